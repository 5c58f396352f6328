package import PinproxySecurity
package import PinproxyTLS
import Synchronization

/// TLS sessions of origins, for abbreviated handshakes; shared by all workers. Resuming presents no certificate: a
/// session is found only under the ``OriginKey`` of its verdict, while that is valid.
package final class UpstreamSessionCache: Sendable {
    package struct Entry: Sendable {
        package let session: TLSSession
        package let verdict: Verdict
        /// Unix time at which the chain expires.
        package let validUntil: Int64
    }

    /// Sessions per origin. Each TLS 1.3 ticket is used once (RFC 8446 appendix C.4), so fewer cost handshakes.
    private let perOrigin: Int
    /// Sessions in all, some 3 KiB each. A full cache drops one origin's.
    private let capacity: Int

    private struct Sessions {
        var kept: [OriginKey: [Entry]] = [:]
        var count = 0

        mutating func forget(_ key: OriginKey) -> Int {
            let gone = kept.removeValue(forKey: key)?.count ?? 0
            count -= gone
            return gone
        }
    }

    private let sessions = Mutex(Sessions())

    package init(perOrigin: Int = 64, capacity: Int = 16_384) {
        self.perOrigin = perOrigin
        self.capacity = capacity
    }

    package func store(_ entry: Entry, for key: OriginKey) {
        sessions.withLock { sessions in
            if sessions.count >= capacity, let victim = sessions.kept.first?.key { _ = sessions.forget(victim) }
            if sessions.kept[key, default: []].count >= perOrigin {
                sessions.kept[key]?.removeFirst()
                sessions.count -= 1
            }
            sessions.kept[key, default: []].append(entry)
            sessions.count += 1
        }
    }

    package func take(for key: OriginKey, at unixTime: Int64) -> Entry? {
        sessions.withLock { sessions in
            guard let entry = sessions.kept[key]?.popLast() else { return nil }
            sessions.count -= 1
            if sessions.kept[key]?.isEmpty == true { sessions.kept[key] = nil }
            return entry.validUntil > unixTime ? entry : nil
        }
    }

    /// Drops the sessions of origins that `isRetired` names, e.g. after a reload, and returns their number.
    @discardableResult
    package func retire(where isRetired: (OriginKey) -> Bool) -> Int {
        // Evaluated outside of the lock, which every handshake takes.
        let retired = sessions.withLock { Array($0.kept.keys) }.filter(isRetired)
        return sessions.withLock { sessions in retired.reduce(0) { $0 + sessions.forget($1) } }
    }
}
