import PinproxyTLS

/// The state of a store, guarded by its lock.
struct DiskStoreState: ~Copyable {
    /// Nil after ``DiskStore/close()``, and while the directory can't be used. Only here: it can't be locked twice.
    private var opened: OpenedStore?
    private var isClosed = false
    private(set) var refusal: DirectoryRefusal?
    private let path: String
    private let clock: @Sendable () -> Int64

    var pause: StoringPause?
    var records = 0
    /// Bytes of all records.
    var bytes: UInt64 = 0
    var evicted = 0
    var damaged = 0

    /// Bytes of bodies that are being written.
    private(set) var reserved: UInt64 = 0
    private(set) var writing: [Int64: Writing] = [:]
    /// Never used twice in a process, not even with a new index.
    private var lastID: Int64 = 0
    /// The times of use by record number, until they are written.
    var touches: [Int64: Int64] = [:]
    var events: [DiskStoreEvent] = []

    struct Writing {
        let identity: StoredRecord.Identity
        var reserved: UInt64 = 0
    }

    /// - Parameter clock: milliseconds since 1970.
    init(_ path: String, clock: @escaping @Sendable () -> Int64) {
        self.path = path
        self.clock = clock
    }

    var now: Int64 { clock() }

    mutating func nextID() -> Int64 {
        lastID += 1
        return lastID
    }

    // MARK: Opening

    mutating func open(_ start: OpenedStore.Start) throws(DirectoryRefusal) {
        opened = nil
        records = 0
        bytes = 0
        do throws(DirectoryRefusal) {
            let store = try OpenedStore(path, start, writing: Set(writing.keys))
            records = store.contents.records
            bytes = store.contents.bytes
            lastID = max(lastID, store.contents.lastID)
            events += store.contents.events
            opened = consume store
            refusal = nil
        } catch {
            refusal = error
            throw error
        }
    }

    mutating func close() {
        flushTouches()
        abandon { _ in true }
        isClosed = true
        opened = nil
    }

    func requireOpen() throws(StoringFailure) {
        if isClosed { throw .closed }
    }

    mutating func requireStorable() throws(StoringFailure) {
        if let pause, pause.holds(at: now) { throw .paused(pause.problem) }
        try requireUsable()
    }

    /// Opens the store again if its files were deleted meanwhile, or if it couldn't be opened so far.
    mutating func requireUsable() throws(StoringFailure) {
        try requireOpen()
        do throws(DirectoryRefusal) {
            try reopenIfDeleted()
        } catch {
            if case .disk(_, let problem) = error { pauseStoring(problem) }
            throw .refused(error)
        }
    }

    /// - Returns: whether it was opened again.
    @discardableResult
    mutating func reopenIfDeleted() throws(DirectoryRefusal) -> Bool {
        if isClosed { return false }
        switch opened {
        case .some(let store):
            guard let missing = store.missing else { return false }
            events.append(.reopened(reason: "\(missing) was deleted or replaced"))
        case .none: break
        }
        try open(.asFound)
        return true
    }

    // MARK: Use

    /// Calls `body` with the index and the directory. After a failure a damaged index is replaced by a new one, or
    /// storing pauses.
    /// - Returns: nil if the store isn't open.
    mutating func use<Result: ~Copyable>(
        _ body: (borrowing OpenedStore) throws(DiskProblem) -> Result
    ) throws(DiskProblem) -> Result? {
        do throws(DiskProblem) {
            switch opened {
            case .some(let store): return try body(store)
            case .none: return nil
            }
        } catch {
            failed(error)
            throw error
        }
    }

    /// Uses the store to store a response.
    mutating func useForStoring<Result: ~Copyable>(
        _ body: (borrowing OpenedStore) throws(DiskProblem) -> Result
    ) throws(StoringFailure) -> Result {
        try requireStorable()
        do throws(DiskProblem) {
            if let result = try use(body) { return result }
        } catch {
            throw .disk(error)
        }
        throw .closed
    }

    private mutating func failed(_ problem: DiskProblem) {
        if problem.isDamage, (try? open(.settingIndexAside("\(problem)"))) != nil { return }
        pauseStoring(problem)
    }

    mutating func pauseStoring(_ problem: DiskProblem) {
        let now = now
        // Several that fail together are one event.
        let isNew = pause.map { !$0.holds(at: now) } ?? true
        pause = StoringPause(problem: problem, since: now)
        if isNew { events.append(.paused(problem, seconds: StoringPause.seconds)) }
    }

    /// Something was stored or removed: the disk works.
    mutating func succeeded() {
        guard pause != nil else { return }
        pause = nil
        events.append(.resumed)
    }

    // MARK: Bodies being written

    mutating func beginWriting(_ id: Int64, _ identity: StoredRecord.Identity) {
        writing[id] = Writing(identity: identity)
    }

    mutating func reserve(_ bytes: UInt64, for id: Int64) {
        writing[id]?.reserved += bytes
        reserved += bytes
    }

    /// - Returns: false if it was ended already.
    @discardableResult
    mutating func endWriting(_ id: Int64) -> Bool {
        guard let writing = writing.removeValue(forKey: id) else { return false }
        reserved -= writing.reserved
        return true
    }

    /// Abandons the matching records that are being written.
    mutating func abandon(_ isWanted: (StoredRecord.Identity) -> Bool) {
        for (id, writing) in writing where isWanted(writing.identity) { abandon(id) }
    }

    mutating func abandon(_ id: Int64) {
        guard endWriting(id) else { return }
        _ = try? use { store throws(DiskProblem) in store.directory.removeBody(id) }
    }

    // MARK: Uses

    /// Writes them in one transaction. They are dropped if that fails: only the order of eviction suffers.
    mutating func flushTouches() {
        guard !touches.isEmpty else { return }
        let touches = touches
        self.touches = [:]
        _ = try? use { store throws(DiskProblem) in
            try store.index.transaction { () throws(DiskProblem) in try store.index.use(touches) }
        }
    }
}

/// Storing pauses after a failure of the disk.
struct StoringPause {
    static let seconds = 30

    let problem: DiskProblem
    /// Milliseconds since 1970.
    let since: Int64

    /// False for a clock that was set back, too.
    func holds(at now: Int64) -> Bool { (since..<since + Int64(Self.seconds) * 1000).contains(now) }
}
