import Configuration
import EventLoop
import HTTPWire
package import Session
import Transport

/// A request of a client: its identity, route, rules and record. Its exchange belongs to its door. An HTTP/1.1
/// connection reuses the object for all its requests. The two are one idea: each asks the other.
package final class ClientRequest {
    /// A step that waits. It must not capture the request or its connection: neither would ever be released.
    typealias Step = (ClientRequest) -> Void

    private enum Phase {
        /// Idle, or in its exchange.
        case settled
        case identifying(Step)
        case authenticating
    }

    private enum Suspension {
        case none, suspended
        /// A step ended meanwhile: the next is taken at the resumption.
        case holding(Step)
    }

    // unowned: the connection keeps its requests until it is released.
    unowned var connection: ClientConnection!
    let worker: WorkerContext
    let server: HTTP1Server
    private var phase = Phase.settled
    private var suspension = Suspension.none
    /// Inside a CONNECT, the identity that opened it.
    var identity = ClientIdentity()
    var route: Route?
    /// The rules' idle timeout after a switch of protocols.
    var timeout: Duration?
    var conversionTicket: BodyWorkTicket?

    init(_ server: HTTP1Server, worker: WorkerContext) {
        self.server = server
        self.worker = worker
    }

    deinit { conversionTicket?.cancel() }

    var record: TaskRecord {
        _read { yield server.exchange.record }
        _modify { yield &server.exchange.record }
    }

    var peer: ClientPeer { connection.peer }

    /// Reports refusals only; ``ClientIdentity/run`` grants rights.
    var run: Run? { identity.run ?? connection.inquiries.run }

    // MARK: Steps that wait

    var isWaiting: Bool { if case .settled = phase { false } else { true } }
    var isAuthenticating: Bool { if case .authenticating = phase { true } else { false } }
    var isSuspended: Bool { if case .none = suspension { false } else { true } }

    /// Keeps the request until ``goOn()`` is called.
    func keep(_ step: @escaping Step) {
        phase = .identifying(step)
        server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
    }

    /// Continues, unless the task is suspended.
    func goOn() {
        guard case .identifying(let step) = phase, !holdsBack({ $0.goOn() }) else { return }
        settle()
        step(self)
    }

    func awaitRuling() {
        phase = .authenticating
        server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
    }

    func settle() {
        phase = .settled
        server.clearDeadline()
    }

    /// - Returns: whether the task is suspended, so that the step waits for its resumption.
    func holdsBack(_ step: @escaping Step) -> Bool {
        guard isSuspended else { return false }
        suspension = .holding(step)
        return true
    }

    // MARK: Control

    func suspend(_ cause: String) {
        if server.exchange.isUnderWay { return server.exchange.suspend(cause) }
        suspension = .suspended
        server.stream.wantsRead = false
        server.clearDeadline()
        worker.session.hooks.suspended?(record, cause)
    }

    func resume(_ cause: String) {
        if server.exchange.isUnderWay { return server.exchange.resume(cause) }
        worker.session.hooks.resumed?(record, cause)
        let before = suspension
        suspension = .none
        switch phase {
        case .identifying, .authenticating:
            server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
            server.stream.wantsRead = true
        case .settled: server.resumeGathering()
        }
        if case .holding(let step) = before { step(self) }
    }

    func cancel(_ cause: String, host: String) {
        if server.exchange.isUnderWay { return server.exchange.cancel(cause, isTold: true) }
        phase = .settled
        suspension = .none
        server.refuseRequest(.cancelled(by: cause, host: host))
    }

    /// Nil: none is in flight.
    var task: TaskSummary? {
        if let summary = server.exchange.summary { return summary }
        switch phase {
        case .identifying: return connection.summary("finding out who asks", isSuspended: isSuspended)
        case .authenticating: return connection.summary("comparing credentials", isSuspended: isSuspended)
        case .settled: break
        }
        switch server.phase {
        case .gathering: return connection.summary("receiving the request's body", isSuspended: isSuspended)
        case .held: return connection.summary("converting the request's body", isSuspended: isSuspended)
        case .breakingOff:
            // The rest of a cut response is still being delivered.
            return TaskSummary(
                record, state: .canceling, phase: "delivering what was passed on", up: record.bytesUp, down: record.bytesDown,
                now: worker.loop.now)
        default: return nil
        }
    }

    /// Cheaper than ``task``.
    var hasTask: Bool {
        if case .breakingOff = server.phase { return true }
        return server.exchange.isUnderWay || isHeld
    }

    // MARK: The end

    /// The connection is closed: later answers are ignored.
    func giveUp() {
        phase = .settled
        suspension = .none
        conversionTicket.take()?.cancel()
    }

    /// The request has no exchange yet.
    private var isHeld: Bool {
        guard !server.exchange.isUnderWay else { return false }
        switch server.phase {
        case .gathering, .held: return true
        default: return false
        }
    }

    /// Completes the task of a request without an exchange.
    func completeHeld(_ cause: String) {
        guard connection.state.takesRequests, isHeld, record.ended == nil else { return }
        record.failed(cause)
        worker.session.complete(&record)
    }
}

extension ClientRequest: RequestHandler {
    package func received(by server: HTTP1Server) {
        let connection: ClientConnection = connection
        guard case .inside = connection.state.phase, let tunnel = connection.tunnel else { return receivedByProxy() }
        if tunnel.isPlain { receivedPlainInside(tunnel) } else { receivedInside(tunnel, of: connection) }
    }

    package func receivedUnreadable(_ error: ProxyError, by server: HTTP1Server) {
        if case .open = connection.state.phase, !worker.shared.runs.isEmpty {
            identity = ClientIdentity()
            if awaitsRuns({ $0.receivedUnreadable(error, by: $0.server) }) { return }
            run?.requested()
        }
        server.refuseUnreadable(error)
    }

    package func refused(_ error: ProxyError) { refused(error, isShown: connection.tunnel?.refusalInside == nil) }

    /// - Parameter isShown: false: the run knows the refusal already.
    func refused(_ error: ProxyError, isShown: Bool) {
        guard isShown else { return }
        // Its program may send credentials next.
        if case .credentialsMissing = error { return }
        run?.refused(error.report, asking: record.authority)
    }

    package func attemptReport() -> AttemptReport {
        { [worker, route] result in if let route { worker.report(result, of: route) } }
    }

    package func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>) {
        if let route { worker.report(result, of: route) }
    }

    package func timedOut(_ server: HTTP1Server) {
        guard connection.state.takesRequests else { return connection.lentStreamTimedOut(server) }
        let patience = worker.snapshot.timeouts.idleClient
        switch phase {
        case .identifying: completeHeld("who the client is was not found out within \(patience)")
        case .authenticating: completeHeld("its password was not compared within \(patience)")
        case .settled: completeHeld("its body was not converted within \(patience)")
        }
        server.abort()
    }

    package func clientHasGone(_ why: String) {
        let isGathering = if case .gathering = server.phase { true } else { false }
        let what =
            switch phase {
            case .identifying: "it was found out who it is"
            case .authenticating: "its password was compared"
            case .settled where !connection.state.takesRequests: "its origin was connected to"
            case .settled: isGathering ? "its body was received" : "its body was converted"
            }
        record.failed("client: \(why), while \(what)")
        completeHeld("client: \(why), while \(what)")
        server.abort()
    }
}
