import PinproxySession
import Synchronization

/// One task of a ``SessionManager``: NSURLSessionTask. Made suspended; ``resume()``, or waiting for its ``result()``,
/// begins it. Thread-safe. A task of an ended session fails with ``SessionError/invalidated``.
public final class SessionTask: Sendable {
    /// The state of a task, as NSURLSessionTaskState.
    public enum State: Sendable, Hashable {
        /// Data may be transferred.
        case running
        /// The task has not begun, or was stopped by ``SessionTask/suspend()``.
        case suspended
        /// The task was cancelled, and is about to end.
        case canceling
        /// The task has ended; its result is known.
        case completed
    }

    /// The result of a completed task.
    public struct Result: Sendable {
        /// The final response, with the metrics of the task.
        public let response: HTTPResponse
        /// The body without the content codings that the session requested; empty for a download and a stream.
        public let body: [UInt8]
        /// A download's path.
        public let file: String?
    }

    enum Purpose: Sendable {
        case data
        case download(to: String)
        case stream(BodyChannel)
    }

    typealias Outcome = Swift.Result<Result, SessionError>

    /// The task's number, unique in the session, from 1.
    public let id: UInt64
    /// The original request, before any redirect.
    public let request: HTTPRequest
    let purpose: Purpose
    private let runner: any TaskRunner
    private let shared = Mutex(Shared())

    private struct Shared {
        var state = State.suspended
        var hasBegun = false
        var progress = TransferProgress()
        var outcome: Outcome?
        var waiting: [CheckedContinuation<Outcome, Never>] = []
        var streams: [Int: AsyncStream<TransferProgress>.Continuation] = [:]
        var streamsMade = 0
    }

    init(id: UInt64, request: HTTPRequest, purpose: Purpose, runner: any TaskRunner) {
        self.id = id
        self.request = request
        self.purpose = purpose
        self.runner = runner
    }

    /// The current state.
    public var state: State { shared.withLock { $0.state } }

    /// Begins the task, or continues it after ``suspend()``. Otherwise does nothing.
    public func resume() {
        let begins: Bool? = shared.withLock { shared in
            guard shared.state == .suspended else { return nil }
            shared.state = .running
            defer { shared.hasBegun = true }
            return !shared.hasBegun
        }
        guard let begins else { return }
        tell(begins ? .begin : .resume)
    }

    /// Stops reading, writing and its timeouts until ``resume()``.
    public func suspend() {
        let isWanted = shared.withLock { shared in
            guard shared.state == .running else { return false }
            shared.state = .suspended
            return true
        }
        guard isWanted else { return }
        tell(.suspend)
    }

    /// Ends the task with ``SessionError/cancelled``, unless it has completed.
    public func cancel() {
        let hasBegun: Bool? = shared.withLock { shared in
            guard shared.state == .running || shared.state == .suspended else { return nil }
            shared.state = .canceling
            return shared.hasBegun
        }
        guard let hasBegun else { return }
        guard hasBegun else { return complete(.failure(.cancelled)) }
        tell(.cancel)
    }

    private func tell(_ order: TaskOrder) {
        if !runner.perform(order, for: self) { complete(.failure(.invalidated)) }
    }

    /// Waits for the task's end, and begins it if needed. Cancelling the waiting Swift task cancels it.
    public func result() async throws(SessionError) -> Result {
        let outcome = await withTaskCancellationHandler {
            if shared.withLock({ !$0.hasBegun }) { resume() }
            return await withCheckedContinuation { continuation in
                let known = shared.withLock { shared -> Outcome? in
                    if shared.outcome == nil { shared.waiting.append(continuation) }
                    return shared.outcome
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            cancel()
        }
        return try outcome.get()
    }

    // MARK: Progress

    /// The progress, now and at each change. Slow readers get the newest; the last is the final one.
    public var progress: AsyncStream<TransferProgress> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: TransferProgress.self, bufferingPolicy: .bufferingNewest(1))
        let (now, number) = shared.withLock { shared -> (TransferProgress, Int?) in
            guard shared.outcome == nil else { return (shared.progress, nil) }
            shared.streamsMade += 1
            shared.streams[shared.streamsMade] = continuation
            return (shared.progress, shared.streamsMade)
        }
        continuation.yield(now)
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.shared.withLock { $0.streams.removeValue(forKey: number) }
        }
        return stream
    }

    func report(_ progress: TransferProgress) {
        let streams = shared.withLock { shared -> [AsyncStream<TransferProgress>.Continuation] in
            shared.progress = progress
            return shared.streams.isEmpty ? [] : Array(shared.streams.values)
        }
        for stream in streams { stream.yield(progress) }
    }

    /// Only the first outcome counts.
    func complete(_ outcome: Outcome) {
        let (waiting, streams) = shared.withLock { shared in
            guard shared.outcome == nil else {
                return ([CheckedContinuation<Outcome, Never>](), [AsyncStream<TransferProgress>.Continuation]())
            }
            shared.outcome = outcome
            shared.state = .completed
            defer {
                shared.waiting = []
                shared.streams = [:]
            }
            return (shared.waiting, Array(shared.streams.values))
        }
        if case .stream(let channel) = purpose {
            if case .failure(let failure) = outcome { channel.end(failure) } else { channel.end(nil) }
        }
        for stream in streams { stream.finish() }
        for continuation in waiting { continuation.resume(returning: outcome) }
    }
}

/// The progress of a task's bodies: NSProgress of AFNetworking's uploads and downloads.
public struct TransferProgress: Sendable, Hashable {
    /// Bytes of the request's body that were sent; it decreases when the body is sent again.
    public internal(set) var sent: UInt64 = 0
    /// The length of the request's body; nil: unknown, or no body.
    public internal(set) var sentTotal: UInt64?
    /// Bytes of the response's body that have arrived.
    public internal(set) var received: UInt64 = 0
    /// The length of the response's body, by Content-Length; nil: unknown.
    public internal(set) var receivedTotal: UInt64?

    init() {}
}

enum TaskOrder: Sendable { case begin, suspend, resume, cancel }

protocol TaskRunner: Sendable {
    /// - Returns: false: the session has ended.
    func perform(_ order: TaskOrder, for task: SessionTask) -> Bool
}
