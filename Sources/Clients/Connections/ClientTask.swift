import Configuration
package import EventLoop
import Logging
package import Session
import Transport

/// The task that a client has under way, and control over it.
extension ClientConnection {
    /// What can be told of it now; nil if there is none.
    package var task: TaskSummary? {
        switch state {
        case .open, .inside: return server.exchange.summary ?? heldTask ?? endingTask
        case .identifying: return summary("finding out who asks")
        case .authenticating: return summary("comparing credentials")
        case .connecting: return summary("connecting")
        case .promised, .promisedRefusal: return summary("answering CONNECT")
        case .awaitingHandshake, .securing: return summary("TLS handshake with the client")
        case .verifying(let tunnel):
            return summary("verifying the tunnel", up: tunnel.bytesUp, down: tunnel.bytesDown)
        case .relaying(let relay, _):
            return summary(
                "relaying", isSuspended: relay.isSuspended, up: record.bytesUp + relay.bytesUp,
                down: record.bytesDown + relay.bytesDown)
        case .closed: return nil
        }
    }

    /// Whether there is one, found out at less cost.
    package var hasTask: Bool {
        switch state {
        case .open, .inside:
            if server.exchange.isUnderWay { return true }
            switch server.phase {
            case .gathering, .held, .breakingOff: return true
            default: return false
            }
        case .closed: return false
        default: return record.ended == nil
        }
    }

    /// Whether it has had no request for that long, and none has begun.
    package func hasRested(nanoseconds: UInt64, at now: MonotonicTime) -> Bool {
        server.isAwaitingRequest && server.requests.isEmpty && now - server.lastUsed > nanoseconds
    }

    /// A request whose body the rules have written anew, before it is passed on.
    var heldTask: TaskSummary? {
        switch server.phase {
        case .gathering: summary("receiving the request's body")
        case .held: summary("converting the request's body")
        default: nil
        }
    }

    /// A response that was cut, as long as the client still gets what was passed on of it.
    private var endingTask: TaskSummary? {
        guard case .breakingOff = server.phase else { return nil }
        return TaskSummary(
            record, state: .canceling, phase: "delivering what was passed on", up: record.bytesUp, down: record.bytesDown,
            now: worker.loop.now)
    }

    private func summary(
        _ phase: String, isSuspended: Bool? = nil, up: UInt64 = 0, down: UInt64 = 0
    ) -> TaskSummary? {
        guard record.ended == nil else { return nil }
        return TaskSummary(
            record, state: isSuspended ?? suspension.isSuspended ? .suspended : .running, phase: phase, up: up, down: down,
            now: worker.loop.now)
    }

    /// The task that has just ended, as its record has it.
    package var completedTask: TaskSummary {
        TaskSummary(
            record, state: .completed, phase: "over", up: record.bytesUp, down: record.bytesDown, now: worker.loop.now)
    }

    // MARK: Control

    /// Reads nothing on either side from now on, and keeps no time. A connection that is being made, and a TLS
    /// handshake that has begun, are brought to their end, and nothing follows from it.
    /// - Parameter cause: who wants it.
    package func suspendTask(_ cause: String) {
        guard task?.state == .running else { return }
        switch state {
        case .open, .inside:
            if server.exchange.isUnderWay { return server.exchange.suspend(cause) }
            suspension = .suspended
            server.stream.wantsRead = false
            server.clearDeadline()
        case .relaying(let relay, _): relay.suspend()
        case .verifying(let tunnel):
            suspension = .suspended
            tunnel.suspend()
            server.clearDeadline()
        case .identifying, .authenticating, .connecting, .promised, .promisedRefusal, .awaitingHandshake, .securing:
            suspension = .suspended
            server.stream.wantsRead = false
            server.clearDeadline()
        case .closed: return
        }
        worker.session.hooks.suspended?(record, cause)
    }

    /// - Parameter cause: who wants it.
    package func resumeTask(_ cause: String) {
        guard task?.state == .suspended else { return }
        if server.exchange.isUnderWay { return server.exchange.resume(cause) }
        worker.session.hooks.resumed?(record, cause)
        let before = suspension
        suspension = .none
        switch state {
        case .relaying(let relay, _): return relay.resume()
        case .verifying(let tunnel):
            server.setDeadline(afterNanoseconds: handshakeNanoseconds)
            tunnel.resume()
        case .awaitingHandshake, .securing:
            server.setDeadline(afterNanoseconds: handshakeNanoseconds)
            server.stream.wantsRead = true
        case .identifying, .authenticating, .promised, .promisedRefusal:
            server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
            server.stream.wantsRead = true
        case .connecting:
            boundConnecting()
            server.stream.wantsRead = true
        case .open, .inside: server.resumeGathering()
        case .closed: break
        }
        if case .holding(let work) = before { work(self) }
    }

    /// Ends both sides, so that nobody takes a part for the whole. A client that has no part is told.
    /// - Parameter cause: who wants it.
    package func cancelTask(_ cause: String) {
        guard let task, task.state != .canceling else { return }
        worker.log(.info, "task.cancel", ["task": .stringConvertible(task.id), "host": "\(task.host)", "cause": "\(cause)"])
        switch state {
        case .open, .inside:
            if server.exchange.isUnderWay { return server.exchange.cancel(cause, isTold: true) }
            suspension = .none
            server.refuseRequest(.cancelled(by: cause, host: task.host))
        case .identifying(let before, _):
            state = before
            suspension = .none
            server.refuseRequest(.cancelled(by: cause, host: task.host))
        // CONNECT was answered: what the client speaks is TLS.
        case .connecting where server.isLent: cut(cause)
        case .authenticating, .connecting:
            if case .connecting(let attempt) = state { attempt.cancel() }
            state = .open
            suspension = .none
            server.refuseRequest(.cancelled(by: cause, host: task.host))
        case .promised, .promisedRefusal, .awaitingHandshake, .securing, .verifying, .relaying, .closed: cut(cause)
        }
    }
}
