import PinproxyTLS

/// Takes the body of a response. Dropped without a commit, it leaves nothing.
///
/// An error ends the writing: each later call throws it again.
package struct BodyWriter: ~Copyable, Sendable {
    private let store: DiskStore
    private let id: Int64
    private let identity: StoredRecord.Identity
    /// From the first full piece on.
    private var file: BodyFile?
    /// The piece that isn't full yet.
    private var piece: [UInt8] = []
    private var written: UInt64 = 0
    private var tags: PieceTags
    private var failure: StoringFailure?

    init(store: DiskStore, id: Int64, identity: StoredRecord.Identity) {
        self.store = store
        self.id = id
        self.identity = identity
        tags = PieceTags(id: id)
    }

    deinit { store.abandon(id) }

    /// Bytes so far.
    package var length: UInt64 { written + UInt64(piece.count) }

    package mutating func append(_ bytes: [UInt8]) throws(StoringFailure) { try append(bytes.span) }

    /// - Throws: `tooLarge` as soon as the body exceeds its part of the store.
    package mutating func append(_ bytes: Span<UInt8>) throws(StoringFailure) {
        if let failure { throw failure }
        do throws(StoringFailure) {
            guard length + UInt64(bytes.count) <= store.bodyLimit else { throw .tooLarge(limit: store.bodyLimit) }
            var taken = 0
            while taken < bytes.count {
                if piece.isEmpty { piece.reserveCapacity(min(bytes.count - taken, Piece.size)) }
                let count = min(bytes.count - taken, Piece.size - piece.count)
                bytes.withUnsafeBufferPointer { piece.append(contentsOf: $0[taken..<taken + count]) }
                taken += count
                if piece.count == Piece.size { try flush() }
            }
        } catch {
            failure = error
            throw error
        }
    }

    /// Stores the response, in place of the one with the same key and variant.
    /// - Returns: its record.
    package consuming func commit(head: [UInt8], metadata: [UInt8]) throws(StoringFailure) -> StoredRecord {
        if let failure { throw failure }
        guard identity.byteCount + head.count + metadata.count <= DiskStore.rowLimit else {
            throw .tooLarge(limit: UInt64(DiskStore.rowLimit))
        }
        let (length, isInline) = (length, length <= Piece.inlineLimit)
        if isInline {
            if !piece.isEmpty { tags.append(piece) }
        } else if !piece.isEmpty {
            try flush()
        }
        // Blocks and row besides the bytes of a file.
        let size = StoredRecord.size(identity, head: head.count, metadata: metadata.count, length: length)
        try store.reserve(size - written, for: id)
        return try store.commit(
            id: id, identity, head: head, metadata: metadata, length: length, pieces: tags.bytes,
            content: isInline ? piece : [])
    }

    private mutating func flush() throws(StoringFailure) {
        try store.reserve(UInt64(piece.count), for: id)
        if written == 0 { file = try store.createBody(id) }
        do throws(DiskProblem) {
            try file?.write(piece, at: written)
        } catch {
            store.failed(error)
            throw .disk(error)
        }
        tags.append(piece)
        written += UInt64(piece.count)
        piece.removeAll(keepingCapacity: true)
    }
}
