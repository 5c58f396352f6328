import Synchronization
package import Security
package import TLS

/// TLS sessions of origins, for abbreviated handshakes; shared by all workers.
///
/// A resumed session shows no certificate, so that the verdict of the full handshake goes with it:
/// sessions are found only under the ``OriginKey`` whose policy gave that verdict, and no longer
/// than the chain is valid.
package final class UpstreamSessionCache: Sendable {
    package struct Entry: Sendable {
        package let session: TLSSession
        package let verdict: Verdict
        /// Unix time from which the chain is no longer valid.
        package let validUntil: Int64
    }

    /// Sessions kept of one origin: TLS 1.3 tickets are for one use each (RFC 8446 appendix C.4).
    private static let perOrigin = 4
    private static let maximumOrigins = 4096

    private let sessions = Mutex<[OriginKey: [Entry]]>([:])

    package init() {}

    package func store(_ entry: Entry, for key: OriginKey) {
        sessions.withLock { sessions in
            if sessions[key] == nil, sessions.count >= Self.maximumOrigins, let victim = sessions.first?.key {
                sessions[victim] = nil
            }
            var kept = sessions[key, default: []]
            if kept.count >= Self.perOrigin { kept.removeFirst() }
            kept.append(entry)
            sessions[key] = kept
        }
    }

    /// Takes the newest session out.
    package func take(for key: OriginKey, at unixTime: Int64) -> Entry? {
        sessions.withLock { sessions in
            guard let entry = sessions[key]?.popLast() else { return nil }
            if sessions[key]?.isEmpty == true { sessions[key] = nil }
            return entry.validUntil > unixTime ? entry : nil
        }
    }

    /// Gives up the sessions with origins that `isRetired` names, e.g. after a reload: a policy that
    /// comes back later begins with full handshakes.
    /// - Returns: how many those were.
    @discardableResult
    package func retire(where isRetired: (OriginKey) -> Bool) -> Int {
        // Asked outside of the lock, which every handshake takes.
        let retired = sessions.withLock { Array($0.keys) }.filter(isRetired)
        return sessions.withLock { sessions in
            retired.reduce(0) { $0 + (sessions.removeValue(forKey: $1)?.count ?? 0) }
        }
    }
}
