import Configuration
import EventLoop
import HTTPWire
package import Session
import Transport

/// A request of a client: its identity, route, rules and record. Its exchange belongs to its door.
///
/// A connection of HTTP/1.1 uses the same object for all its requests, one after the other. The two are one idea: a
/// request asks its connection who the client is, and a connection hands its requests over.
package final class ClientRequest {
    /// A step that waits for something. It is called with the request, and must not capture it or its connection: neither
    /// would ever be released.
    typealias Step = (ClientRequest) -> Void

    private enum Phase {
        /// It is nowhere, or its exchange's.
        case settled
        /// The processes at the other end are being looked for.
        case identifying(Step)
        /// Credentials are being compared.
        case authenticating
    }

    private enum Suspension {
        case none, suspended
        /// A step ended meanwhile: what follows is done when the task is resumed.
        case holding(Step)
    }

    // unowned: the connection keeps its requests until it is released.
    unowned var connection: ClientConnection!
    let worker: WorkerContext
    /// The near door of the request's exchange.
    let server: HTTP1Server
    private var phase = Phase.settled
    private var suspension = Suspension.none
    /// Inside a CONNECT, the identity that opened it.
    var identity = ClientIdentity()
    /// Where the exchange in flight goes.
    var route: Route?
    /// How long its rules let it be silent, should it switch protocols.
    var timeout: Duration?
    /// Of the conversion of the body.
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

    /// Hears of refusals. Only ``ClientIdentity/run`` decides what the client may do.
    var run: Run? { identity.run ?? connection.inquiries.run }

    // MARK: Steps that wait

    var isIdentifying: Bool { if case .identifying = phase { true } else { false } }
    var isAuthenticating: Bool { if case .authenticating = phase { true } else { false } }
    var isSuspended: Bool { if case .none = suspension { false } else { true } }

    /// Keeps the request in hand until somebody else has answered, and ``goOn()`` is called.
    func keep(_ step: @escaping Step) {
        phase = .identifying(step)
        server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
    }

    /// What was awaited is known: on with the request, unless its task is suspended.
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

    /// Keeps what follows a step until the task is resumed, if it is suspended.
    /// - Returns: whether it is.
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

    /// The task in flight; nil if there is none.
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
            // A response that was cut, as long as the client still gets what was passed on of it.
            return TaskSummary(
                record, state: .canceling, phase: "delivering what was passed on", up: record.bytesUp, down: record.bytesDown,
                now: worker.loop.now)
        default: return nil
        }
    }

    /// Whether there is a task, found out at less cost.
    var hasTask: Bool {
        if server.exchange.isUnderWay { return true }
        switch server.phase {
        case .gathering, .held, .breakingOff: return true
        default: return false
        }
    }

    // MARK: The end

    /// The connection is closed: an answer that arrives later leads to nothing.
    func giveUp() {
        phase = .settled
        suspension = .none
        conversionTicket.take()?.cancel()
    }

    /// The exchange that would complete the task has not begun.
    private var isHeld: Bool {
        guard !server.exchange.isUnderWay else { return false }
        switch server.phase {
        case .gathering, .held: return true
        default: return false
        }
    }

    /// Completes the task of a request that has no exchange yet.
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

    /// Tells the run.
    /// - Parameter isShown: false: it heard of the refusal before.
    func refused(_ error: ProxyError, isShown: Bool) {
        guard isShown else { return }
        // Its program may have just not sent yet what it is asked for.
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
