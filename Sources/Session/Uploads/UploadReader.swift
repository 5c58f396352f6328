package import PinproxyEventLoop
package import PinproxySerialization

/// Reads a body's files piece by piece, on a queue that may wait for a disk.
package final class UploadReader: @unchecked Sendable {
    // @unchecked: after init only the queue, which runs one block at a time, touches the body.
    private static let piece = 64 << 10

    /// In bytes.
    package let length: Int
    private let body: MultipartBody
    private let queue: WorkQueue

    package init(_ body: MultipartBody, on queue: WorkQueue) {
        length = body.contentLength
        self.body = body
        self.queue = queue
    }

    /// - Parameter done: called once, on the queue; with no bytes at the end.
    package func read(_ done: @escaping @Sendable (Result<[UInt8], RequestSerializationError>) -> Void) {
        queue.async { [self] in
            done(Result { () throws(RequestSerializationError) in try body.read(Self.piece) })
        }
    }

    /// Restarts at the first byte.
    func rewind() { queue.async { [self] in body.rewind() } }
}
