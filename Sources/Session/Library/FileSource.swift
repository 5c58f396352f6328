import EventLoop
import Serialization

/// Opens the files of a body, on the queue that reads them.
func openFiles(
    on loop: EventLoop, _ completion: @escaping (Result<any BodySource, SessionError>) -> Void,
    _ open: @escaping @Sendable () throws(RequestSerializationError) -> MultipartBody
) {
    let queue: WorkQueue
    do throws(SystemError) {
        queue = try WorkQueue("uploads", isBackground: true)
    } catch {
        return completion(.failure(.requestBody("\(error)")))
    }
    let handle = loop.handle
    let completion = LoopBound(completion, on: loop)
    queue.async {
        let reader = Result { () throws(RequestSerializationError) in UploadReader(try open(), on: queue) }
        handle.post { loop in
            completion.value(on: loop)(reader.map { FileSource($0, on: loop) }.mapError { .requestBody($0.description) })
        }
    }
}

/// Files, read on a queue a piece at a time.
final class FileSource: BodySource {
    let length: Int?
    var isEmpty: Bool { false }
    var canRewind: Bool { true }
    var moved: (() -> Void)?
    private let reader: UploadReader
    private let loop: EventLoop
    private var left: Int
    private var isReading = false
    private var arrived: Result<[UInt8], RequestSerializationError>?
    /// What is read for an earlier one is of no use.
    private var round = 0

    fileprivate init(_ reader: UploadReader, on loop: EventLoop) {
        self.reader = reader
        length = reader.length
        self.loop = loop
        left = reader.length
    }

    func next() -> BodyPiece {
        if let arrived {
            self.arrived = nil
            switch arrived {
            case .success(let bytes):
                left -= bytes.count
                return .bytes(bytes)
            case .failure(let error): return .failed(error.description)
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
        reader.read { [round] result in
            handle.post { source.value(on: $0).read(result, in: round) }
        }
    }

    private func read(_ result: Result<[UInt8], RequestSerializationError>, in round: Int) {
        guard round == self.round else { return }
        isReading = false
        arrived = result
        moved?()
    }

    func rewind() {
        round += 1
        isReading = false
        arrived = nil
        left = length ?? 0
        reader.rewind()
    }

    func close() { moved = nil }
}
