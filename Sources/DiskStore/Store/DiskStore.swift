import Glibc
package import PinproxyTLS
import Synchronization

/// Stored responses on disk: an index in SQLite with the small bodies, and a file for each of the others.
///
/// A cache may lose what is new, and never serves what is torn. So nothing waits for the disk: bodies aren't synced,
/// and commits reach it with the index's next checkpoint. Instead everything that is read is verified: rows by a digest
/// over their fields, bodies by a tag of each piece, before a byte is returned. What doesn't match is removed, and is a
/// miss.
///
/// All calls are synchronous and may wait for the disk and for each other. They may come from any thread; a worker's
/// thread should make none.
///
/// - The directory is locked: one process has it at a time.
/// - What is stored stays below `limit` bytes. At the limit the least recently used records go, down to 60 % of it. The
///   index's log (up to 8 MiB) comes besides.
/// - When the disk is full or fails, storing pauses, for ``StoringPause/seconds`` or until something is purged.
///   Reading doesn't pause.
/// - Files, or the whole directory, may be deleted at any time.
package final class DiskStore: Sendable {
    /// Records of one key. The least recently used goes.
    package static let variantLimit = 16
    /// A body may take one `largestPart`th of the limit.
    package static let largestPart: UInt64 = 20
    /// Head, metadata and keys together, in bytes.
    package static let rowLimit = 1 << 20
    /// Uses that wait to be written.
    static let touchLimit = 256
    /// Milliseconds: a use this soon after another one isn't noted.
    private static let touchInterval: Int64 = 60_000

    /// Bytes.
    package let limit: UInt64
    package let directory: String
    let state: Mutex<DiskStoreState>
    /// Held by the thread that makes room; others wait for it.
    let eviction = Mutex(())
    private let report: @Sendable (DiskStoreEvent) -> Void

    /// Opens the store, or makes it. Its directory is made if only the last component is missing.
    /// - Parameters:
    ///   - limit: bytes.
    ///   - now: milliseconds since 1970.
    ///   - report: called on the thread of the call that led to the event, without locks. It may call the store.
    package init(
        directory: String, limit: UInt64, now: @escaping @Sendable () -> Int64 = DiskStore.wallClock,
        report: @escaping @Sendable (DiskStoreEvent) -> Void = { _ in }
    ) throws(DirectoryRefusal) {
        self.directory = directory
        self.limit = limit
        self.report = report
        state = Mutex(DiskStoreState(directory, clock: now))
        try locked { state throws(DirectoryRefusal) in try state.open(.asFound) }
        // The limit may be lower than it was.
        keepLimit()
    }

    package static func wallClock() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Ends the use of the directory: another process may have it. Later calls find nothing and store nothing.
    package func close() { locked { state in state.close() } }

    /// Runs `body` below the lock, then reports what happened.
    func locked<Result: ~Copyable & Sendable, Failure: Error>(
        _ body: (inout DiskStoreState) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { deliver() }
        return try state.withLock { state throws(Failure) in try body(&state) }
    }

    /// Reports what happened. The caller holds no lock.
    func deliver() {
        let events = state.withLock { state in
            let events = state.events
            state.events = []
            return events
        }
        for event in events { report(event) }
    }

    // MARK: Records

    /// The records of a key, up to ``variantLimit``. Empty as well if the index can't be read.
    package func records(of key: SHA256Digest) -> [StoredRecord] {
        locked { state in
            let found = (try? state.use { store throws(DiskProblem) in try store.index.records(of: key) }) ?? []
            for one in found where !one.isSound {
                state.removeDamaged(one.record, "its row in the index was changed")
            }
            return found.filter(\.isSound).map(\.record)
        }
    }

    /// Notes that a record was used, once a minute. Notes are written together, and lost when the process is killed.
    package func touch(_ record: StoredRecord) {
        locked { state in
            let now = state.now
            let last = state.touches[record.id] ?? record.lastUsed
            // A clock that was set back notes it too.
            if last <= now, now - last < Self.touchInterval { return }
            state.touches[record.id] = now
            if state.touches.count >= Self.touchLimit { state.flushTouches() }
        }
    }

    /// Gives a record another head and other metadata, as a 304 does.
    package func update(
        _ record: StoredRecord, head: [UInt8], metadata: [UInt8]
    ) throws(StoringFailure) -> StoredRecord {
        guard record.identity.byteCount + head.count + metadata.count <= Self.rowLimit else {
            throw .tooLarge(limit: UInt64(Self.rowLimit))
        }
        defer { keepLimit() }
        return try locked { state throws(StoringFailure) in
            let changed = StoredRecord(
                identity: record.identity, head: head, metadata: metadata, length: record.length,
                stored: record.stored, lastUsed: state.now, id: record.id, body: record.body)
            let size = try state.useForStoring { store throws(DiskProblem) in
                try store.index.transaction { () throws(DiskProblem) in try store.index.change(changed) }
            }
            guard let size else { throw .purged }
            state.touches[record.id] = changed.lastUsed
            state.bytes = state.bytes + changed.size - min(size, state.bytes)
            state.succeeded()
            return changed
        }
    }

    /// Removes a record and its body; readers that are open read on. Nothing happens if it isn't there any more.
    package func remove(_ record: StoredRecord) throws(StoringFailure) {
        try locked { state throws(StoringFailure) in
            do throws(DiskProblem) { try state.remove([record.id]) } catch { throw .disk(error) }
        }
    }
}
