package import EventLoop
package import Serialization

/// Opens the files of a body.
func openFiles(
    on loop: EventLoop, _ completion: @escaping (Result<any UploadSource, SessionError>) -> Void,
    _ open: @escaping @Sendable () throws(RequestSerializationError) -> MultipartBody
) {
    let queue: WorkQueue
    do throws(SystemError) {
        queue = try WorkQueue("uploads", isBackground: true)
    } catch {
        return completion(.failure(.system("\(error)")))
    }
    let handle = loop.handle
    let completion = LoopBound(completion, on: loop)
    queue.async {
        // The loop reads its length, and hands it back to the queue.
        nonisolated(unsafe) let opened = Result { () throws(RequestSerializationError) in try open() }
        handle.post { loop in
            completion.value(on: loop)(
                opened.map { FileSource($0, on: queue, loop: loop) }.mapError { .requestBody($0.description) })
        }
    }
}

/// Files, read on a queue a piece at a time.
package final class FileSource: UploadSource {
    private static let piece = 64 << 10
    package let length: Int?
    package var isEmpty: Bool { false }
    package let canRewind: Bool
    package var moved: (() -> Void)?
    private let reader: FileReader
    private let loop: EventLoop
    private var left: Int
    private var isReading = false
    private var arrived: Result<[UInt8], RequestSerializationError>?
    /// What is read for an earlier one is of no use.
    private var round = 0

    /// - Parameters:
    ///   - body: of opened files. It is read on the queue alone from here on.
    ///   - canRewind: the files may be read again.
    package init(_ body: MultipartBody, on queue: WorkQueue, loop: EventLoop, canRewind: Bool = true) {
        reader = FileReader(body, on: queue)
        length = body.contentLength
        left = body.contentLength
        self.loop = loop
        self.canRewind = canRewind
    }

    package func next() -> BodyPiece {
        if let arrived {
            self.arrived = nil
            switch arrived {
            case .success(let bytes):
                left -= bytes.count
                return .bytes(bytes)
            case .failure(let error): return .failed(.requestBroke(error))
            }
        }
        guard left > 0 else { return .ended }
        read()
        return .waiting
    }

    private func read() {
        guard !isReading else { return }
        isReading = true
        let source = LoopBound(self, on: loop)
        let handle = loop.handle
        reader.read(Self.piece) { [round] result in
            handle.post { source.value(on: $0).read(result, in: round) }
        }
    }

    private func read(_ result: Result<[UInt8], RequestSerializationError>, in round: Int) {
        guard round == self.round else { return }
        isReading = false
        arrived = result
        moved?()
    }

    package func rewind() {
        round += 1
        isReading = false
        arrived = nil
        left = length ?? 0
        reader.rewind()
    }

    package func close() { moved = nil }
}

/// The part that waits for a disk.
private final class FileReader: @unchecked Sendable {
    // Touched on the queue alone.
    private let body: MultipartBody
    private let queue: WorkQueue

    init(_ body: MultipartBody, on queue: WorkQueue) {
        self.body = body
        self.queue = queue
    }

    func read(_ count: Int, _ done: @escaping @Sendable (Result<[UInt8], RequestSerializationError>) -> Void) {
        queue.async { [self] in
            done(Result { () throws(RequestSerializationError) in try piece(count) })
        }
    }

    private func piece(_ count: Int) throws(RequestSerializationError) -> [UInt8] {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { room.deallocate() }
        return Array(room[..<(try body.read(into: room))])
    }

    func rewind() { queue.async { [self] in body.rewind() } }
}
