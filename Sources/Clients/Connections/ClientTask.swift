import Configuration
package import EventLoop
import Logging
package import Session
import Transport

/// The client's task in flight, and control over it.
extension ClientConnection {
    /// Nil: none is in flight.
    package var task: TaskSummary? {
        guard let words = state.words else { return state.takesRequests ? request.task : nil }
        switch carrier {
        case .none: return summary(words)
        case .verifying(let tunnel): return summary(words, up: tunnel.bytesUp, down: tunnel.bytesDown)
        case .relaying(let relay, _):
            return summary(words, up: record.bytesUp + relay.bytesUp, down: record.bytesDown + relay.bytesDown)
        }
    }

    /// Cheaper than ``task``.
    package var hasTask: Bool {
        switch state.phase {
        case .open, .inside: request.hasTask
        case .closed: false
        default: record.ended == nil
        }
    }

    /// Whether it has been idle for longer than that.
    package func hasRested(nanoseconds: UInt64, at now: MonotonicTime) -> Bool {
        server.isAwaitingRequest && server.requests.isEmpty && now - server.lastUsed > nanoseconds
    }

    func summary(_ phase: String, isSuspended: Bool? = nil, up: UInt64 = 0, down: UInt64 = 0) -> TaskSummary? {
        guard record.ended == nil else { return nil }
        return TaskSummary(
            record, state: isSuspended ?? state.isSuspended ? .suspended : .running, phase: phase, up: up, down: down,
            now: worker.loop.now)
    }

    /// The task that has just ended.
    package var completedTask: TaskSummary {
        TaskSummary(
            record, state: .completed, phase: "over", up: record.bytesUp, down: record.bytesDown, now: worker.loop.now)
    }

    // MARK: Control

    /// Stops reading on both sides, and the clock. A connection attempt or TLS handshake in flight is completed; the
    /// next step waits for ``resumeTask(_:)``.
    /// - Parameter cause: who wants it.
    package func suspendTask(_ cause: String) {
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
    package func resumeTask(_ cause: String) {
        guard task?.state == .suspended else { return }
        if state.takesRequests { return request.resume(cause) }
        worker.session.hooks.resumed?(record, cause)
        happened(.resume)
    }

    func goOn() {
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
    package func cancelTask(_ cause: String) {
        guard let task, task.state != .canceling else { return }
        worker.log(.info, "task.cancel", ["task": .stringConvertible(task.id), "host": "\(task.host)", "cause": "\(cause)"])
        if state.takesRequests { return request.cancel(cause, host: task.host) }
        self.cause = cause
        tunnel?.refusal = .cancelled(by: cause, host: task.host)
        happened(.cancel)
    }
}
