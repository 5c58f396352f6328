import Dispatch
import EventLoop
import Serialization

/// Opens the files of a body.
func openFiles(
    on loop: EventLoop, _ completion: @escaping (Result<any BodySource, SessionError>) -> Void,
    _ open: @escaping @Sendable () throws(RequestSerializationError) -> MultipartBody
) {
    let handle = loop.handle
    let completion = LoopBound(completion, on: loop)
    let reader = FileReader()
    reader.open(open) { result in
        handle.post { loop in
            completion.value(on: loop)(result.map { FileSource(reader, length: $0, on: loop) })
        }
    }
}

/// Files, read on a queue a piece at a time.
final class FileSource: BodySource {
    private static let piece = 64 << 10
    let length: Int?
    var isEmpty: Bool { false }
    var canRewind: Bool { true }
    var moved: (() -> Void)?
    private let reader: FileReader
    private let loop: EventLoop
    private var left: Int
    private var isReading = false
    private var arrived: Result<[UInt8], SessionError>?
    /// What is read for an earlier one is of no use.
    private var round = 0

    fileprivate init(_ reader: FileReader, length: Int, on loop: EventLoop) {
        self.reader = reader
        self.length = length
        self.loop = loop
        left = length
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
        reader.read(Self.piece) { [round] result in
            handle.post { source.value(on: $0).read(result, in: round) }
        }
    }

    private func read(_ result: Result<[UInt8], SessionError>, in round: Int) {
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

/// The blocking part, on a queue of its own.
private final class FileReader: @unchecked Sendable {
    // Touched on the queue alone.
    private var body: MultipartBody?
    private let queue = DispatchQueue(label: "pinproxy.uploads", qos: .utility)

    func open(
        _ open: @escaping @Sendable () throws(RequestSerializationError) -> MultipartBody,
        _ done: @escaping @Sendable (Result<Int, SessionError>) -> Void
    ) {
        queue.async { [self] in
            do throws(RequestSerializationError) {
                let opened = try open()
                body = opened
                done(.success(opened.contentLength))
            } catch {
                done(.failure(.requestBody(error.description)))
            }
        }
    }

    func read(_ count: Int, _ done: @escaping @Sendable (Result<[UInt8], SessionError>) -> Void) {
        queue.async { [self] in
            guard let body else { return done(.success([])) }
            let room = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
            defer { room.deallocate() }
            do throws(RequestSerializationError) {
                done(.success(Array(room[..<(try body.read(into: room))])))
            } catch {
                done(.failure(.requestBody(error.description)))
            }
        }
    }

    func rewind() { queue.async { [self] in body?.rewind() } }
}
