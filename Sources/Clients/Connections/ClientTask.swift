import Logging
import PinproxyConfiguration
package import PinproxyEventLoop
package import PinproxySession
import PinproxyTransport

/// The client's tasks in flight, and control over them. Each request of HTTP/2 has one.
extension ClientConnection {
    package var tasks: [TaskSummary] {
        if let http2 { return http2.requests.compactMap(\.task) }
        return task.map { [$0] } ?? []
    }

    /// Nil: it isn't in flight.
    package func task(_ number: UInt64) -> TaskSummary? {
        if let http2 { return http2.requests.first { $0.record.number == number }?.task }
        return record.number == number ? task : nil
    }

    /// The task of HTTP/1.1, or of the CONNECT.
    private var task: TaskSummary? {
        guard let words = state.words else { return state.takesRequests ? request.task : nil }
        switch carrier {
        case .none: return summary(words)
        case .verifying(let tunnel): return summary(words, up: tunnel.bytesUp, down: tunnel.bytesDown)
        case .relaying(let relay, _):
            return summary(words, up: record.bytesUp + relay.bytesUp, down: record.bytesDown + relay.bytesDown)
        }
    }

    var hasTask: Bool {
        switch state.phase {
        case .open, .inside: request.hasTask
        case .closed: false
        default: record.ended == nil
        }
    }

    /// Whether it has been idle for longer than `nanoseconds`.
    package func hasBeenIdle(nanoseconds: UInt64, at now: MonotonicTime) -> Bool {
        if let http2 { return http2.isIdle && now - http2.lastUsed > nanoseconds }
        return server.isAwaitingRequest && server.requests.isEmpty && now - server.lastUsed > nanoseconds
    }

    package var lastUsed: MonotonicTime { http2?.lastUsed ?? server.lastUsed }

    /// Closes an idle connection.
    package func close() {
        if let http2 { http2.leave() } else { server.close() }
    }

    private func summary(_ phase: String, up: UInt64 = 0, down: UInt64 = 0) -> TaskSummary? {
        guard record.ended == nil else { return nil }
        return TaskSummary(
            record, state: state.isSuspended ? .suspended : .running, phase: phase, up: up, down: down,
            now: worker.loop.now)
    }

    /// A task that has just ended.
    private func completed(_ record: borrowing TaskRecord) -> TaskSummary {
        TaskSummary(
            record, state: .completed, phase: "over", up: record.bytesUp, down: record.bytesDown, now: worker.loop.now)
    }

    // MARK: Control

    package enum TaskOrder: String, Sendable {
        case suspend, resume, cancel
    }

    /// - Parameter cause: who wants it.
    /// - Returns: the task afterwards; nil: not in flight.
    package func obey(_ order: TaskOrder, task number: UInt64, because cause: String) -> TaskSummary? {
        guard let task = task(number) else { return nil }
        guard let http2 else {
            switch order {
            case .suspend: suspendTask(cause)
            case .resume: resumeTask(cause)
            case .cancel: cancelTask(cause)
            }
            return self.task ?? completed(record)
        }
        guard let request = http2.requests.first(where: { $0.record.number == number }) else { return nil }
        switch order {
        case .suspend where task.state == .running: request.suspend(cause)
        case .resume where task.state == .suspended: request.resume(cause)
        case .cancel where task.state != .canceling: cancel(request, task, because: cause)
        default: break
        }
        return request.task ?? completed(request.record)
    }

    private func cancel(_ request: ClientRequest, _ task: TaskSummary, because cause: String) {
        worker.log(
            .info, "task.cancel", ["task": .stringConvertible(task.id), "host": "\(task.host)", "cause": "\(cause)"])
        request.cancel(cause, host: task.host)
    }

    /// Stops reading on both sides, and the clock. A connection attempt or TLS handshake in flight is completed; the
    /// next step waits for ``resumeTask(_:)``.
    /// - Parameter cause: who wants it.
    private func suspendTask(_ cause: String) {
        guard task?.state == .running else { return }
        if state.takesRequests { return request.suspend(cause) }
        happened(.suspend)
        worker.session.hooks.suspended?(record, cause)
    }

    func pause() {
        switch carrier {
        case .relaying(let relay, _): return relay.suspend()
        case .verifying(let tunnel): tunnel.suspend()
        case .none: server.stream.wantsRead = false
        }
        server.clearDeadline()
    }

    /// - Parameter cause: who wants it.
    private func resumeTask(_ cause: String) {
        guard task?.state == .suspended else { return }
        if state.takesRequests { return request.resume(cause) }
        worker.session.hooks.resumed?(record, cause)
        happened(.resume)
    }

    func proceed() {
        switch state.phase {
        case .relaying:
            if case .relaying(let relay, _) = carrier { relay.resume() }
        case .verifying:
            server.setDeadline(afterNanoseconds: handshakeNanoseconds)
            if case .verifying(let tunnel) = carrier { tunnel.resume() }
        case .awaitingHandshake, .securing:
            server.setDeadline(afterNanoseconds: handshakeNanoseconds)
            server.stream.wantsRead = true
        case .answering:
            server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
            server.stream.wantsRead = true
        case .connecting:
            boundConnecting()
            server.stream.wantsRead = true
        case .open, .inside, .closed: break
        }
        takeUp()
    }

    /// Resets both sides; a client that has no part of a response gets an answer.
    /// - Parameter cause: who wants it.
    private func cancelTask(_ cause: String) {
        guard let task, task.state != .canceling else { return }
        if state.takesRequests { return cancel(request, task, because: cause) }
        worker.log(
            .info, "task.cancel", ["task": .stringConvertible(task.id), "host": "\(task.host)", "cause": "\(cause)"])
        self.cause = cause
        tunnel?.refusal = .cancelled(by: cause, host: task.host)
        happened(.cancel)
    }
}
