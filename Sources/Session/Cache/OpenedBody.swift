import PinproxyDiskStore
import PinproxyEventLoop

/// A stored body on disk, open: it stays readable if it is replaced or purged meanwhile, or the store is closed.
final class OpenedBody: Sendable {
    let record: StoredRecord
    /// The queue for reading it.
    let queue: WorkQueue
    private let reader: BodyReader
    /// The body's first piece, verified.
    let beginning: ArraySlice<UInt8>

    /// Nil: it can't be read, or isn't what was stored. Waits for the disk.
    init?(of record: StoredRecord, in store: DiskStore, on queue: WorkQueue) {
        do throws(ReadingFailure) {
            let reader = try store.reader(of: record)
            beginning = try reader.piece(from: 0)
            self.reader = reader
            self.record = record
            self.queue = queue
        } catch {
            return nil
        }
    }

    var count: UInt64 { record.length }

    /// Never waits for the disk. Nil: ``piece(from:)`` has to.
    func cachedPiece(from offset: UInt64) -> ArraySlice<UInt8>? { reader.cachedPiece(from: offset) }

    /// Waits for the disk.
    func piece(from offset: UInt64) -> Result<ArraySlice<UInt8>, ReadingFailure> {
        Result { () throws(ReadingFailure) in try reader.piece(from: offset) }
    }
}
