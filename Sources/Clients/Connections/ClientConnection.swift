import Configuration
import EventLoop
import HTTPWire
import Security
package import Session
import TLS
package import Transport

/// One client: what it asks of the proxy itself (CONNECT, or requests with whole URLs), and, inside a CONNECT
/// that is intercepted, the requests to the one authority that it named.
package final class ClientConnection {
    /// A step that the connection keeps for later, and then calls with itself. It must not capture the connection,
    /// which would never be released.
    typealias Step = (ClientConnection) -> Void

    enum State {
        /// Requests are for the proxy itself.
        case open
        /// The processes at the other end are being looked for; then it goes on as before.
        indirect case identifying(State, Step)
        /// Credentials are being compared.
        case authenticating
        /// A CONNECT waits for its upstream connection.
        case connecting(ConnectAttempt)
        /// It is being answered.
        case promised(Route, UpstreamConnection)
        /// The same with nothing behind it but a refusal, which the client's requests are answered with.
        case promisedRefusal(Route)
        /// It was answered, and the client's TLS handshake is awaited.
        case awaitingHandshake(Route, Identity)
        /// The client's TLS handshake with a minted leaf.
        case securing(Route)
        /// Requests are for the authority of CONNECT.
        case inside(Route)
        /// A tunnel's TLS handshake passes by and is judged.
        case verifying(VerifiedTunnel)
        case relaying(Relay, Relayed)
        case closed

        /// A CONNECT has begun, and its connections take more memory from step to step.
        fileprivate var isConnecting: Bool {
            switch self {
            case .connecting, .promised, .promisedRefusal, .awaitingHandshake, .securing, .verifying: true
            case .open, .identifying, .authenticating, .inside, .relaying, .closed: false
            }
        }
    }

    let worker: WorkerContext
    let source: Endpoint
    /// Its socket is the one that was accepted, and counts under `limits.clients`.
    package let isCounted: Bool
    let place: ClientPlace
    /// The proxy's as this client reaches it, where its socket doesn't tell.
    let ownURL: String?
    package let server: HTTP1Server
    var state = State.open { didSet { claimMemory() } }
    /// Of the CONNECT that is being made.
    private var claim: MemoryClaim?
    var suspension = TaskSuspension.none
    /// The authority of CONNECT as the client wrote it: SNI, Host and the certificate that the client is shown name that.
    var asked: Authority?
    /// Where the exchange under way goes.
    var exchangeRoute: Route?
    /// What its rules say of a time without a byte, should it become something else.
    var exchangeTimeout: Duration?
    /// Who asked for what this connection has become.
    var identity: ClientIdentity
    /// Who is at the other end is being asked, for a decision.
    var isPeerAsked = false
    /// Whether the runs of its user were asked if it is theirs.
    var runInquiry = RunInquiryState.notBegun
    /// The same, for the log or the list of tasks.
    var isPeerLookedFor = false
    /// Its run waits to hear how the TLS handshake goes.
    private var isAwaited = false
    /// An upstream connection for the next request: made for CONNECT, or bound to this client.
    private var kept: UpstreamConnection?
    /// Of the conversion of a request's body.
    var conversionTicket: BodyWorkTicket?
    /// What every request inside is answered with: the origin was refused (`on_refusal: page`).
    var refusalInside: ProxyError?
    /// The client speaks plain HTTP inside CONNECT.
    var isPlainInside = false
    /// The client's SNI isn't the authority of CONNECT: its first request is answered 421.
    private(set) var misdirectedName: String?
    /// The snapshot that ``isAllowed`` was found by.
    var judged: Snapshot?
    var wasAllowed = false
    private let ended: (ClientConnection) -> Void

    /// - Parameter ended: called once, when the connection is over.
    package init(
        worker: WorkerContext, stream: ByteStream, arrival: Arrival, isCounted: Bool, url: String? = nil,
        ended: @escaping (ClientConnection) -> Void
    ) {
        self.ended = ended
        self.worker = worker
        source = arrival.source
        identity = ClientIdentity(peer: arrival.peer)
        self.isCounted = isCounted
        ownURL = url
        place = arrival.place
        server = HTTP1Server(stream: stream, session: worker.session, settings: worker.serverSettings)
        server.owner = self
    }

    deinit { conversionTicket?.cancel() }

    private func claimMemory() {
        let isConnecting = state.isConnecting
        if isConnecting == (claim != nil) { return }
        claim = isConnecting ? MemoryClaim(on: worker.shared.pressure) : nil
    }

    package func start() {
        server.exchange.record.client = source
        server.exchange.record.traits = peer.traits
        if worker.snapshot.log.access { askPeer() }
        server.serve()
    }

    /// What is known of the task under way.
    package var record: TaskRecord {
        _read { yield server.exchange.record }
        _modify { yield &server.exchange.record }
    }

    /// Keeps what follows a step until the task is resumed, if it is suspended.
    /// - Returns: whether it is.
    func holdsBack(_ work: @escaping Step) -> Bool {
        guard suspension.isSuspended else { return false }
        suspension = .holding(work)
        return true
    }

    // MARK: The upstream connection for the next request

    /// The upstream connection at hand, if the policy in force would have made it and it still stands.
    func takeKept(for route: Route) -> UpstreamConnection? {
        guard let kept else { return nil }
        self.kept = nil
        if !kept.isOver, !kept.origin.hasRetired(kept), kept.validUntil > worker.unixTime(), kept.origin.key == route.target.key {
            return kept
        }
        kept.close()
        return nil
    }

    /// Keeps a connection for the next request, if the configuration in force would have made it.
    func hold(_ upstream: UpstreamConnection) {
        if upstream.origin.hasRetired(upstream) { return upstream.close() }
        kept = upstream
        upstream.hold()
    }

    /// The configuration has changed: what is kept of an older one goes.
    package func dropRetired() {
        guard let kept, kept.origin.hasRetired(kept) else { return }
        self.kept = nil
        kept.close()
    }

    func giveBackKept() {
        if let kept { worker.giveBack(kept) }
        kept = nil
    }

    func handshakeNamed(_ name: String) { misdirectedName = name }
}

extension ClientConnection: HTTP1ServerOwner {
    package func received(by server: HTTP1Server) {
        guard case .inside(let route) = state else { return requestToProxy() }
        if isPlainInside { requestPlainInside(route) } else { requestInside(route) }
    }

    package func receivedUnreadable(_ error: ProxyError, by server: HTTP1Server) {
        if case .open = state, !worker.shared.runs.isEmpty {
            identity = ClientIdentity(peer: identity.peer)
            if awaitsRuns({ $0.receivedUnreadable(error, by: $0.server) }) { return }
            run?.requested()
        }
        server.refuseUnreadable(error)
    }

    package func switched(to upstream: UpstreamConnection, by server: HTTP1Server) {
        guard let exchangeRoute else { return server.abort() }
        record.kind = .upgrade
        relay(
            with: upstream,
            as: Relayed(
                route: exchangeRoute, address: upstream.address, verdict: upstream.verdict, timeout: exchangeTimeout),
            received: server.requests.takeBuffer(), answered: upstream.responses.takeBuffer())
    }

    package func keep(_ upstream: UpstreamConnection) { hold(upstream) }

    func handshakeBegan() {
        guard let run else { return }
        isAwaited = true
        run.stepBegan()
    }

    func handshakeEnded() {
        if isAwaited { run?.stepEnded() }
        isAwaited = false
    }

    package func refused(_ error: ProxyError) {
        // Of a refusal that is shown inside it has been told.
        if refusalInside != nil { return }
        // Its program may have just not sent yet what it is asked for.
        if case .credentialsMissing = error { return }
        run?.refused(error.report, asking: record.authority)
    }

    package func attemptReport() -> AttemptReport {
        { [worker, exchangeRoute] result in if let exchangeRoute { worker.report(result, of: exchangeRoute) } }
    }

    package func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>) {
        if let exchangeRoute { worker.report(result, of: exchangeRoute) }
    }

    package func timedOut(_ server: HTTP1Server) {
        let timeouts = worker.snapshot.timeouts
        switch state {
        case .verifying where worker.isDraining, .awaitingHandshake where worker.isDraining: return fail(Self.stopped)
        case .verifying: return fail("the TLS handshake in the tunnel took too long")
        case .connecting(let attempt): return refuseToConnect(attempt)
        case .awaitingHandshake, .securing:
            record.failed("the client's TLS handshake took longer than \(timeouts.tlsHandshake)")
        case .identifying: record.failed("who the client is was not found out within \(timeouts.idleClient)")
        case .authenticating: record.failed("its password was not compared within \(timeouts.idleClient)")
        case .open, .inside: completeHeld("its body was not converted within \(timeouts.idleClient)")
        case .promised, .promisedRefusal, .relaying, .closed: break
        }
        server.abort()
    }

    package func clientHasGone(_ why: String) {
        if case .identifying = state {
            record.failed("client: \(why), while it was found out who it is")
            return server.abort()
        }
        let isAuthenticating = if case .authenticating = state { true } else { false }
        let isGathering = if case .gathering = server.phase { true } else { false }
        let what =
            isAuthenticating ? "password was compared"
            : isGathering ? "body was received" : isOpen ? "body was converted" : "origin was connected to"
        record.failed("client: \(why), while its \(what)")
        completeHeld("client: \(why), while its \(what)")
        server.abort()
    }

    package func closed(_ server: HTTP1Server) {
        completeUnanswered()
        handshakeEnded()
        release()
        state = .closed
        ended(self)
    }
}
