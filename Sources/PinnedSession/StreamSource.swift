import PinproxyEventLoop
import PinproxySession

/// Generated pieces, pulled one at a time.
final class StreamSource: UploadSource {
    let length: Int?
    var isEmpty: Bool { false }
    var moved: (() -> Void)?
    private let make: @Sendable () -> RequestBody.Stream?
    private let loop: EventLoop
    private var pull: Pull?
    private var isWaiting = false
    private var arrived: BodyPiece?
    private var count = 0
    private var round = 0
    private var cannotBeMade = false

    init(length: Int?, make: @escaping @Sendable () -> RequestBody.Stream?, on loop: EventLoop) {
        self.length = length
        self.make = make
        self.loop = loop
    }

    var canRewind: Bool { true }

    func next() -> BodyPiece {
        if let arrived {
            self.arrived = nil
            if case .bytes(let bytes) = arrived { count += bytes.count }
            return checked(arrived)
        }
        if cannotBeMade { return .failed(.uploadFailed("the body's stream can't be made again")) }
        if isWaiting { return .waiting }
        if pull == nil {
            guard let stream = make() else {
                cannotBeMade = true
                return .failed(.uploadFailed("the body's stream can't be made\(round > 0 ? " again" : "")"))
            }
            let source = LoopWeak(self, on: loop)
            pull = Pull(stream) { [round] piece in source.post { $0.received(piece, in: round) } }
        }
        isWaiting = true
        pull?.next()
        return .waiting
    }

    /// Enforces the announced length.
    private func checked(_ piece: BodyPiece) -> BodyPiece {
        guard let length else { return piece }
        switch piece {
        case .bytes where count > length:
            return .failed(.uploadFailed("the body's stream is longer than the \(length) bytes announced"))
        case .ended where count < length:
            return .failed(.uploadFailed("the body's stream ended after \(count) of \(length) bytes"))
        default: return piece
        }
    }

    private func received(_ piece: Pull.Piece, in round: Int) {
        guard round == self.round else { return }
        isWaiting = false
        switch piece {
        case .bytes(let bytes):
            // An empty chunk would be the last.
            if bytes.isEmpty {
                isWaiting = true
                pull?.next()
                return
            }
            arrived = .bytes(bytes)
        case .ended: arrived = .ended
        case .failed(let why): arrived = .failed(.uploadFailed(why))
        }
        moved?()
    }

    func rewind() {
        // Nothing was taken yet.
        if pull == nil, count == 0 { return }
        round += 1
        pull = nil
        isWaiting = false
        arrived = nil
        count = 0
    }

    func close() {
        moved = nil
        pull = nil
    }

    /// Reads a stream in a Swift task, a piece for each request.
    private final class Pull: Sendable {
        enum Piece: Sendable {
            case bytes([UInt8])
            case ended
            case failed(String)
        }

        private let wishes: AsyncStream<Void>.Continuation
        private let task: Task<Void, Never>

        init(_ stream: RequestBody.Stream, _ receive: @escaping @Sendable (Piece) -> Void) {
            let (wished, wishes) = AsyncStream.makeStream(of: Void.self)
            self.wishes = wishes
            task = Task {
                var pieces = stream.makeAsyncIterator()
                for await _ in wished {
                    do {
                        guard let piece = try await pieces.next() else { return receive(.ended) }
                        receive(.bytes(piece))
                    } catch {
                        return receive(.failed("the body's stream failed: \(error)"))
                    }
                }
            }
        }

        func next() { wishes.yield() }

        deinit {
            wishes.finish()
            task.cancel()
        }
    }
}
