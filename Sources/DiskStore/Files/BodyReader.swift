import PinproxyTLS
import Synchronization

/// Reads a stored body. It can be read to its end even if the record is removed meanwhile.
package struct BodyReader: ~Copyable, Sendable {
    package let record: StoredRecord
    private let store: DiskStore
    private let file: BodyFile?
    /// The content of a body without a file.
    private let content: [UInt8]
    // Several threads may read.
    private let tags: Mutex<PieceTags>

    init(
        store: DiskStore, record: StoredRecord, file: consuming BodyFile?, content: [UInt8], pieces: [UInt8]
    ) {
        self.store = store
        self.record = record
        self.file = file
        self.content = content
        tags = Mutex(PieceTags(id: record.id, bytes: pieces))
    }

    /// The bytes from `offset` to the end of their piece, up to 64 KiB; empty at the end of the body.
    ///
    /// They are verified. A piece that isn't what was stored is an error, and the record is removed.
    package func piece(from offset: UInt64) throws(ReadingFailure) -> ArraySlice<UInt8> {
        guard offset < record.length else { return [] }
        let (number, start, length) = place(of: offset)
        let bytes: [UInt8]
        do throws(DiskProblem) {
            bytes = try file?.read(length, at: start) ?? content
        } catch {
            throw store.damaged(record, "\(error)")
        }
        guard isStored(bytes, number) else {
            let place = record.hasFile ? "file" : "row in the index"
            throw store.damaged(record, "its \(place) was changed near byte \(start)")
        }
        return bytes[Int(offset - start)...]
    }

    /// Reads a piece from the page cache, without waiting for the disk. Nil: use ``piece(from:)``.
    package func cachedPiece(from offset: UInt64) -> ArraySlice<UInt8>? {
        guard offset < record.length else { return nil }
        let (number, start, length) = place(of: offset)
        guard let bytes = file?.readCached(length, at: start), isStored(bytes, number) else { return nil }
        return bytes[Int(offset - start)...]
    }

    private func place(of offset: UInt64) -> (number: Int, start: UInt64, length: Int) {
        let number = offset / Piece.sizeInFile
        let start = number * Piece.sizeInFile
        return (Int(number), start, Int(min(Piece.sizeInFile, record.length - start)))
    }

    private func isStored(_ bytes: [UInt8], _ number: Int) -> Bool { tags.withLock { $0.verify(bytes, at: number) } }
}

extension DiskStore {
    /// Opens the body of a record for reading. The caller closes it by dropping it.
    package func reader(of record: StoredRecord) throws(ReadingFailure) -> BodyReader {
        try locked { state throws(ReadingFailure) in
            var body: (pieces: [UInt8], content: [UInt8])?
            let file: BodyFile??
            do throws(DiskProblem) {
                file = try state.use { store throws(DiskProblem) -> BodyFile? in
                    body = try store.index.body(of: record.id)
                    return body != nil && record.hasFile ? try store.directory.openBody(record.id) : nil
                }
            } catch {
                throw .disk(error)
            }
            guard let body else { throw .removed }
            var defect = "its row in the index was changed"
            let expected = PieceTags.byteCount(record.pieceCount)
            if body.pieces.count == expected, SHA256Digest.of(body.pieces) == record.body {
                if !record.hasFile {
                    return BodyReader(
                        store: self, record: record, file: nil, content: body.content, pieces: body.pieces)
                }
                defect = "its file is missing or cut"
                if let file, let file, file.length == record.length {
                    return BodyReader(store: self, record: record, file: file, content: [], pieces: body.pieces)
                }
            }
            // It may be missing with the whole store.
            if (try? state.reopenIfDeleted()) ?? true { throw .removed }
            state.removeDamaged(record, defect)
            throw .damaged(defect)
        }
    }

    func damaged(_ record: StoredRecord, _ reason: String) -> ReadingFailure {
        locked { state in state.removeDamaged(record, reason) }
        return .damaged(reason)
    }
}
