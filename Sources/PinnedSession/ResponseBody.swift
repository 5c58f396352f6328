import PinproxyTransport
import Synchronization

/// A response's body as it arrives, in buffers. Nothing more is read from the server while
/// ``watermark`` bytes wait for the program. Releasing the iterator before the end cancels the task, as does releasing
/// the body unread.
///
/// ```swift
/// let (body, response) = try await session.bytes(for: request)
/// for try await buffer in body { … }
/// ```
public struct ResponseBody: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = SessionError

    /// Most buffered bytes, besides a piece of the transfer.
    public static let watermark = 256 << 10

    let reading: BodyReading

    /// The body's task, to suspend it or to see its progress.
    public var task: SessionTask { reading.task }

    /// One iterator reads the body; others fail with ``SessionError/invalidRequest(_:)``.
    public func makeAsyncIterator() -> Iterator { Iterator(reading.channel.isTaken() ? nil : reading) }

    /// Iterates over the buffers of the body.
    public struct Iterator: AsyncIteratorProtocol {
        private let end: IteratorEnd?

        init(_ reading: BodyReading?) { end = reading.map(IteratorEnd.init) }

        /// The next bytes, at least one; nil at the end. Cancelling the Swift task cancels the transfer.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError) -> [UInt8]? {
            guard let reading = end?.reading else {
                throw .invalidRequest("a response's body can be read once")
            }
            let piece = await withTaskCancellationHandler {
                await reading.channel.next()
            } onCancel: {
                reading.task.cancel()
            }
            return try piece.get()
        }

        /// The next bytes, at least one; nil at the end.
        public mutating func next() async throws(SessionError) -> [UInt8]? { try await next(isolation: nil) }
    }

    /// Collects the body, up to `limit` bytes.
    /// - Throws: ``SessionError/bodyTooLong(limit:)`` beyond it.
    public func collect(upTo limit: Int) async throws(SessionError) -> [UInt8] {
        var bytes: [UInt8] = []
        for try await piece in self {
            guard piece.count <= limit - bytes.count else { throw .bodyTooLong(limit: limit) }
            bytes += piece
        }
        return bytes
    }
}

/// A body and its task. The task is cancelled when the body can no longer be read.
final class BodyReading: Sendable {
    let task: SessionTask
    let channel: BodyChannel

    init(_ task: SessionTask, _ channel: BodyChannel) {
        self.task = task
        self.channel = channel
    }

    // Harmless once it has completed.
    deinit { task.cancel() }
}

/// Ends with the iterator's last copy.
private final class IteratorEnd: Sendable {
    let reading: BodyReading
    init(_ reading: BodyReading) { self.reading = reading }
    deinit { reading.task.cancel() }
}

/// Passes the response and its bytes from the session's thread to a program. Thread-safe.
final class BodyChannel: Sendable {
    typealias Piece = Result<[UInt8]?, SessionError>
    typealias Head = Result<HTTPResponse, SessionError>

    private struct State {
        var head: Head?
        var headWaits: CheckedContinuation<Head, Never>?
        var pieces: [[UInt8]] = []
        var first = 0
        var waiting = 0
        var end: Piece?
        var reader: CheckedContinuation<Piece, Never>?
        var isBlocked = false
        var isTaken = false
        var wake: (@Sendable () -> Void)?
    }
    private static let mostRead = 64
    /// Adjacent pieces are joined up to this many bytes.
    private static let joined = 16 << 10
    private let state = Mutex(State())

    // MARK: The session's side

    func began(_ response: HTTPResponse, wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.wake = wake }
        settle(.success(response))
    }

    private func settle(_ head: Head) {
        let waits = state.withLock { state in
            if state.head == nil { state.head = head }
            return state.headWaits.take()
        }
        waits?.resume(returning: head)
    }

    /// False: it is full; ``began(_:wake:)``'s closure is called when there is room.
    func put(_ piece: RawSpan) -> Bool {
        guard piece.byteCount > 0 else { return true }
        let (isTaken, reader) = state.withLock { state -> (Bool, CheckedContinuation<Piece, Never>?) in
            guard state.waiting < ResponseBody.watermark else {
                state.isBlocked = true
                return (false, nil)
            }
            if let reader = state.reader.take() { return (true, reader) }
            state.waiting += piece.byteCount
            // Single bytes are joined into larger arrays.
            if state.pieces.count > state.first, let last = state.pieces.indices.last,
                state.pieces[last].count + piece.byteCount <= BodyChannel.joined
            {
                state.pieces[last].append(copying: piece)
            } else {
                state.pieces.append([UInt8](copying: piece))
            }
            return (true, nil)
        }
        reader?.resume(returning: .success([UInt8](copying: piece)))
        return isTaken
    }

    /// Only the first end counts. What waits can still be read, unless the task was cancelled.
    func end(_ failure: SessionError?) {
        if let failure { settle(.failure(failure)) }
        let (reader, end) = state.withLock { state -> (CheckedContinuation<Piece, Never>?, Piece) in
            let end = state.end ?? failure.map { .failure($0) } ?? .success(nil)
            state.end = end
            state.wake = nil
            switch failure {
            case .cancelled, .invalidated:
                state.pieces = []
                state.first = 0
                state.waiting = 0
            default: break
            }
            return (state.reader.take(), end)
        }
        reader?.resume(returning: end)
    }

    // MARK: The program's side

    /// True if it is already being read.
    func isTaken() -> Bool {
        state.withLock { state in
            defer { state.isTaken = true }
            return state.isTaken
        }
    }

    func head() async -> Head {
        await withCheckedContinuation { continuation in
            let known = state.withLock { state -> Head? in
                if state.head == nil { state.headWaits = continuation }
                return state.head
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    func next() async -> Piece {
        await withCheckedContinuation { continuation in
            let (piece, wake) = state.withLock { state -> (Piece?, (@Sendable () -> Void)?) in
                guard state.first < state.pieces.count else {
                    if state.end == nil { state.reader = continuation }
                    return (state.end, nil)
                }
                let piece = state.pieces[state.first]
                state.pieces[state.first] = []
                state.first += 1
                // A reader that is never quite done must not keep a growing list.
                if state.first == state.pieces.count || state.first == BodyChannel.mostRead {
                    state.pieces.removeFirst(state.first)
                    state.first = 0
                }
                state.waiting -= piece.count
                guard state.isBlocked, state.waiting <= ResponseBody.watermark / 2 else {
                    return (.success(piece), nil)
                }
                state.isBlocked = false
                return (.success(piece), state.wake)
            }
            wake?()
            if let piece { continuation.resume(returning: piece) }
        }
    }
}
