import PinproxyTLS
import Synchronization

extension DiskStore {
    /// Begins to store a body. Nothing of it is seen before ``BodyWriter/commit(head:metadata:)``.
    package func writer(_ identity: StoredRecord.Identity) throws(StoringFailure) -> BodyWriter {
        try locked { state throws(StoringFailure) in
            try state.requireStorable()
            let id = state.nextID()
            state.beginWriting(id, identity)
            return BodyWriter(store: self, id: id, identity: identity)
        }
    }

    /// Makes the file of a body.
    func createBody(_ id: Int64) throws(StoringFailure) -> BodyFile {
        try locked { state throws(StoringFailure) in
            guard state.writing[id] != nil else { throw .purged }
            return try state.useForStoring { store throws(DiskProblem) in try store.directory.createBody(id) }
        }
    }

    /// Bytes that a body may have.
    var bodyLimit: UInt64 { limit / Self.largestPart }

    /// Counts more bytes as used by a body, after making room for them if need be.
    func reserve(_ bytes: UInt64, for id: Int64) throws(StoringFailure) {
        defer { deliver() }
        if try takeRoom(bytes, for: id) { return }
        // After waiting for another thread's eviction there may be room.
        try eviction.withLock { _ throws(StoringFailure) in
            while try !takeRoom(bytes, for: id) {
                guard try evict() else { throw .noRoom }
            }
        }
    }

    private func takeRoom(_ bytes: UInt64, for id: Int64) throws(StoringFailure) -> Bool {
        try state.withLock { state throws(StoringFailure) in
            try state.requireOpen()
            guard state.writing[id] != nil else { throw .purged }
            guard state.bytes + state.reserved + bytes <= limit else { return false }
            state.reserve(bytes, for: id)
            return true
        }
    }

    /// Puts the record of a written body into the index, in place of the one with the same key and variant.
    func commit(
        id: Int64, _ identity: StoredRecord.Identity, head: [UInt8], metadata: [UInt8], length: UInt64,
        pieces: [UInt8], content: [UInt8]
    ) throws(StoringFailure) -> StoredRecord {
        let body = SHA256Digest.of(pieces)
        return try locked { state throws(StoringFailure) in
            let now = state.now
            let record = StoredRecord(
                identity: identity, head: head, metadata: metadata, length: length, stored: now, lastUsed: now, id: id,
                body: body)
            guard state.writing[id] != nil else { throw .purged }
            let touches = state.touches
            let replaced = try state.useForStoring { store throws(DiskProblem) -> DiskStoreState.Removed? in
                // The directory may have been deleted meanwhile.
                guard !record.hasFile || store.directory.hasBody(id) else { return nil }
                var replaced: [Int64] = []
                let removed = try store.index.transaction { () throws(DiskProblem) in
                    try store.index.use(touches)
                    replaced = Self.replaced(by: record, try store.index.siblings(of: identity.key)).map(\.id)
                    let removed = try store.deleteRows(replaced)
                    try store.index.insert(record, pieces: pieces, content: content)
                    return removed
                }
                for id in replaced { store.directory.removeBody(id) }
                return removed
            }
            guard let replaced else { throw .purged }
            state.touches = [:]
            state.endWriting(id)
            state.removed(replaced)
            state.records += 1
            state.bytes += record.size
            state.succeeded()
            return record
        }
    }

    /// The records of the same variant, and the least recently used beyond the limit.
    private static func replaced(
        by record: StoredRecord, _ siblings: [RecordIndex.Sibling]
    ) -> [RecordIndex.Sibling] {
        let same = siblings.filter { $0.variant == record.identity.variant }
        let others = siblings.filter { $0.variant != record.identity.variant }
        let excess = max(0, others.count + 1 - variantLimit)
        return same + others.sorted { ($0.lastUsed, $0.id) < ($1.lastUsed, $1.id) }.prefix(excess)
    }

    /// A body isn't stored after all.
    func abandon(_ id: Int64) { locked { state in state.abandon(id) } }

    /// The file of a body couldn't be written.
    func failed(_ problem: DiskProblem) { locked { state in state.pauseStoring(problem) } }
}
