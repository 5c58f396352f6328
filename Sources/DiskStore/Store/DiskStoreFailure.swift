/// Why a directory can't hold a store.
package enum DirectoryRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// Another process has it.
    case inUse(path: String)
    /// It is not a directory, belongs to another user, or others can write to it; in words.
    case untrusted(path: String, String)
    case disk(path: String, DiskProblem)

    package var description: String {
        switch self {
        case .inUse(let path): "\(path): another process has this cache open"
        case .untrusted(let path, let reason): "\(path): \(reason)"
        case .disk(let path, let problem): "\(path): \(problem)"
        }
    }
}

/// Why a response isn't stored.
package enum StoringFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The body exceeds this many bytes, 5 % of the store; or head, keys and metadata are too long.
    case tooLarge(limit: UInt64)
    /// Responses being written take all the room.
    case noRoom
    /// It was purged, or its file deleted, while it was written.
    case purged
    /// The disk failed now; storing pauses.
    case disk(DiskProblem)
    /// The disk failed a short while ago.
    case paused(DiskProblem)
    /// The directory can no longer be used.
    case refused(DirectoryRefusal)
    /// The store was closed.
    case closed

    package var description: String {
        switch self {
        case .tooLarge(let limit): "larger than \(limit) bytes, the most that is stored"
        case .noRoom: "no room beside other responses being stored"
        case .purged: "purged while it was stored"
        case .disk(let problem): "\(problem)"
        case .paused(let problem): "storing pauses after a failure: \(problem)"
        case .refused(let refusal): "\(refusal)"
        case .closed: "the store is closed"
        }
    }
}

/// Why a stored response can't be read. The record is removed, except after `disk`.
package enum ReadingFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// It was replaced, purged or evicted.
    case removed
    /// Its file or its row isn't what was stored; in words.
    case damaged(String)
    case disk(DiskProblem)

    package var description: String {
        switch self {
        case .removed: "no longer stored"
        case .damaged(let reason): reason
        case .disk(let problem): "\(problem)"
        }
    }
}

/// An action of the store that no caller requested, for a log.
package enum DiskStoreEvent: Sendable, Hashable {
    /// The index was unusable: nothing that was stored is kept. `setAside`: where the index is now, until the next
    /// start that finds a sound one.
    case begunAnew(reason: String, setAside: String?)
    /// The directory, or files that can't be missed, were deleted or replaced while in use.
    case reopened(reason: String)
    /// Bodies without a row, and rows without a body: what a killed process leaves.
    case swept(bodies: Int, rows: Int)
    /// A record was found changed, and removed.
    case damaged(url: String, reason: String)
    case evicted(records: Int, bytes: UInt64)
    case paused(DiskProblem, seconds: Int)
    case resumed
}
