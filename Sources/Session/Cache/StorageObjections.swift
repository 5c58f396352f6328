package import PinproxyCaching
import Synchronization

/// Why a response to GET wasn't stored.
package enum StorageObjection: Sendable, Equatable {
    case refused(StorageRefusal)
    /// Its server would have been refused, and was only reported.
    case reported
    /// It has no end, like server-sent events.
    case endless
    /// It was interrupted, was refused by a rule, was too long, or there was no memory for it.
    case incomplete
}

/// The latest objections, each with its time, for `pinproxy cache show`.
package final class StorageObjections: Sendable {
    /// Objections that are kept, and the longest path and query of one.
    private static let most = 256
    private static let longestTarget = 2048

    private struct Kept {
        var objections: [CacheKey: (objection: StorageObjection, time: Int64)] = [:]
        /// The oldest first, from `next` on.
        var order: [CacheKey] = []
        var next = 0
    }

    private let kept = Mutex(Kept())

    /// - Parameter time: Unix seconds.
    func note(_ objection: StorageObjection, to key: CacheKey, at time: Int64) {
        guard key.target.count <= Self.longestTarget else { return }
        kept.withLock { kept in
            guard kept.objections.updateValue((objection, time), forKey: key) == nil else { return }
            if kept.order.count < Self.most {
                kept.order.append(key)
            } else {
                kept.objections[kept.order[kept.next]] = nil
                kept.order[kept.next] = key
                kept.next = (kept.next + 1) % Self.most
            }
        }
    }

    /// The latest one to a key that matches.
    package func latest(where isMeant: (CacheKey) -> Bool) -> (objection: StorageObjection, time: Int64)? {
        kept.withLock { kept in
            kept.objections.filter { isMeant($0.key) }.values.max { $0.time < $1.time }
        }
    }
}
