import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyLocalPeers
import PinproxyRecords
package import PinproxySession
import PinproxyTransport

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
    // unchecked, as below: stored once.
    @exclusivity(unchecked) unowned var connection: ClientConnection!
    let worker: WorkerContext
    let server: ServerDoor
    // Unchecked below: each is stored whole.
    @exclusivity(unchecked) private var phase = Phase.settled
    /// An answer for it may still arrive, which the object's next request must not get.
    @exclusivity(unchecked) private(set) var hasWaited = false
    @exclusivity(unchecked) private var suspension = Suspension.none
    /// Inside a CONNECT, the identity that opened it.
    @exclusivity(unchecked) var identity = ClientIdentity()
    @exclusivity(unchecked) var route: Route?
    /// The rules' idle timeout after a switch of protocols.
    @exclusivity(unchecked) var timeout: Duration?
    var conversionTicket: BodyWorkTicket?
    /// Set while a stream of HTTP/2 carries another protocol.
    @exclusivity(unchecked) var upgrade: ClientUpgrade?

    init(_ server: ServerDoor, worker: WorkerContext) {
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

    /// Keeps the request until ``proceed()`` is called.
    func keep(_ step: @escaping Step) {
        hasWaited = true
        phase = .identifying(step)
        server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
    }

    /// Continues, unless the task is suspended.
    func proceed() {
        guard case .identifying(let step) = phase, !holdsBack({ $0.proceed() }) else { return }
        settle()
        step(self)
    }

    func awaitRuling() {
        hasWaited = true
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
        if let upgrade {
            upgrade.relay.suspend()
            return worker.session.hooks.suspended?(record, cause) ?? ()
        }
        if server.exchange.isInFlight { return server.exchange.suspend(cause) }
        suspension = .suspended
        server.wantsRead(false)
        server.clearDeadline()
        worker.session.hooks.suspended?(record, cause)
    }

    func resume(_ cause: String) {
        if let upgrade {
            worker.session.hooks.resumed?(record, cause)
            return upgrade.relay.resume()
        }
        if server.exchange.isInFlight { return server.exchange.resume(cause) }
        worker.session.hooks.resumed?(record, cause)
        let before = suspension
        suspension = .none
        switch phase {
        case .identifying, .authenticating:
            server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
            server.wantsRead(true)
        case .settled: server.resumeGathering()
        }
        if case .holding(let step) = before { step(self) }
    }

    func cancel(_ cause: String, host: String) {
        if upgrade != nil { return endRelay(cause) }
        if server.exchange.isInFlight { return server.exchange.cancel(cause, isTold: true) }
        phase = .settled
        suspension = .none
        server.refuseRequest(.cancelled(by: cause, host: host))
    }

    /// Nil: none is in flight.
    var task: TaskSummary? {
        if let summary = server.exchange.summary { return summary }
        if let relay = upgrade?.relay {
            return summary(
                "relaying", isSuspended: relay.isSuspended, up: record.bytesUp + relay.bytesUp,
                down: record.bytesDown + relay.bytesDown)
        }
        switch phase {
        case .identifying: return summary("finding out who asks", isSuspended: isSuspended)
        case .authenticating: return summary("comparing credentials", isSuspended: isSuspended)
        case .settled: break
        }
        switch server.stage {
        case .gathering: return summary("receiving the request's body", isSuspended: isSuspended)
        case .held: return summary("converting the request's body", isSuspended: isSuspended)
        case .delivering:
            // The rest of a cut response is still being delivered.
            return TaskSummary(
                record, state: .canceling, phase: "delivering what was passed on", up: record.bytesUp,
                down: record.bytesDown,
                now: worker.loop.now)
        default: return nil
        }
    }

    private func summary(_ phase: String, isSuspended: Bool, up: UInt64 = 0, down: UInt64 = 0) -> TaskSummary? {
        guard record.ended == nil else { return nil }
        return TaskSummary(
            record, state: isSuspended ? .suspended : .running, phase: phase, up: up, down: down, now: worker.loop.now)
    }

    /// Cheaper than ``task``.
    var hasTask: Bool {
        if upgrade != nil { return true }
        if case .delivering = server.stage { return true }
        return server.exchange.isInFlight || isHeld
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
        guard !server.exchange.isInFlight else { return false }
        switch server.stage {
        case .gathering, .held: return true
        default: return false
        }
    }

    /// The configuration in force refuses this client: it gets no answer.
    func closeConnection(_ cause: String) {
        record.failed(cause)
        worker.session.complete(&record)
        guard let http2 = connection.http2 else { return connection.server.close() }
        server.abort()
        http2.leave()
    }

    /// Completes the task of a request without an exchange.
    func completeHeld(_ cause: String) {
        guard connection.state.takesRequests, isHeld, record.ended == nil else { return }
        record.failed(cause)
        worker.session.complete(&record)
    }
}

extension ClientRequest: RequestHandler {
    package func received(by door: ServerDoor) {
        let connection: ClientConnection = connection
        guard case .inside = connection.state.phase, let tunnel = connection.tunnel else { return receivedByProxy() }
        if tunnel.isPlain { receivedPlainInside(tunnel) } else { receivedInside(tunnel, of: connection) }
    }

    package func receivedUnreadable(_ error: ProxyError, by door: ServerDoor) {
        if case .open = connection.state.phase, !worker.shared.runs.isEmpty {
            identity = ClientIdentity()
            if awaitsRuns({ $0.receivedUnreadable(error, by: $0.server) }) { return }
            run?.requested()
        }
        if case .inside = connection.state.phase { connection.showedTrust() }
        server.refuseUnreadable(error)
    }

    package func refused(_ error: ProxyError) { refused(error, isShown: connection.tunnel?.refusalInside == nil) }

    /// - Parameter isShown: false: the run knows the refusal already.
    func refused(_ error: ProxyError, isShown: Bool) {
        guard isShown else { return }
        // Its program may send credentials next.
        if case .credentialsMissing = error { return }
        var asked = record.authority
        // The host's policy is that of https://.
        if case .plainToPinnedHost = error { asked = asked?.onPort(443) }
        let options =
            error.isOfRules
            ? ExplainCommandLine.options(
                method: record.methodName, path: String(decoding: record.path, as: UTF8.self)) : nil
        run?.refused(error.report, asking: asked, options: options)
    }

    package func attemptReport() -> AttemptReport {
        let requester = Requester(record)
        return { [worker, route] result in if let route { worker.report(result, of: route, for: requester) } }
    }

    package func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>) {
        if let route { worker.report(result, of: route, for: Requester(record)) }
    }

    package var cacheOwner: CacheKey.Owner? {
        if let user = identity.user { return .account(user.name) }
        if let run = identity.run { return .user(run.owner) }
        return peer.socket.map { .user($0.user) }
    }

    package func timedOut(_ door: ServerDoor) {
        guard connection.state.takesRequests else { return connection.happened(.deadline) }
        let patience = worker.snapshot.timeouts.idleClient
        switch phase {
        case .identifying: completeHeld("who the client is was not found out within \(patience)")
        case .authenticating: completeHeld("its password was not compared within \(patience)")
        case .settled: completeHeld("its body was not converted within \(patience)")
        }
        server.abort()
    }

    package func clientHasGone(_ why: String) {
        let isGathering = if case .gathering = server.stage { true } else { false }
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
