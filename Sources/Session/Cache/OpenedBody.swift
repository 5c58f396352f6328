import DiskStore

/// A stored body on disk, open: it stays readable if it is replaced or purged meanwhile.
final class OpenedBody: Sendable {
    let record: StoredRecord
    private let reader: BodyReader
    /// Of the body's first piece, verified.
    let beginning: ArraySlice<UInt8>

    /// Nil: it can't be read, or isn't what was stored. Waits for the disk.
    init?(of record: StoredRecord, in store: DiskStore) {
        do throws(ReadingFailure) {
            let reader = try store.reader(of: record)
            beginning = try reader.piece(from: 0)
            self.reader = reader
            self.record = record
        } catch {
            return nil
        }
    }

    var count: UInt64 { record.length }

    /// Waits for the disk.
    func piece(from offset: UInt64) -> Result<ArraySlice<UInt8>, ReadingFailure> {
        Result { () throws(ReadingFailure) in try reader.piece(from: offset) }
    }
}

/// A stored body, in memory or on disk.
enum StoredBody: Sendable {
    case bytes([UInt8])
    case file(OpenedBody)

    var count: UInt64 {
        switch self {
        case .bytes(let bytes): UInt64(bytes.count)
        case .file(let body): body.count
        }
    }

    /// Nil: it is on disk.
    var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
}
