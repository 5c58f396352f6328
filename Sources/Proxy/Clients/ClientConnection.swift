import Configuration
import EventLoop
import HTTPWire
import Security
import Session
import TLS
import Transport

/// One client: what it asks of the proxy itself (CONNECT, or requests with whole URLs), and, inside a CONNECT
/// that is intercepted, the requests to the one authority that it named.
final class ClientConnection {
    enum State {
        /// Requests are for the proxy itself.
        case open
        /// The processes at the other end are being looked for; then it goes on as before.
        indirect case identifying(State, () -> Void)
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
    }

    let worker: WorkerContext
    let source: Endpoint
    /// Its socket is the one that was accepted, and counts under `limits.clients`.
    let isCounted: Bool
    let place: ClientPlace
    /// The proxy's as this client reaches it, where its socket doesn't tell.
    private let ownURL: String?
    let server: HTTP1Server
    private let stream: ByteStream
    var state = State.open
    var suspension = TaskSuspension.none
    /// The authority of CONNECT as the client wrote it: SNI, Host and the certificate that the client is shown name that.
    private(set) var asked: Authority?
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
    /// What every request inside is answered with: the origin was refused (`on_refusal: page`).
    var refusalInside: ProxyError?
    /// The client's SNI isn't the authority of CONNECT: its first request is answered 421.
    private var misdirectedName: String?
    /// The snapshot that ``isAllowed`` was found by.
    private var judged: Snapshot?
    private var wasAllowed = false
    private let ended: (ClientConnection) -> Void

    /// - Parameter ended: called once, when the connection is over.
    init(
        worker: WorkerContext, stream: ByteStream, arrival: Arrival, isCounted: Bool, url: String? = nil,
        ended: @escaping (ClientConnection) -> Void
    ) {
        self.ended = ended
        self.worker = worker
        self.stream = stream
        source = arrival.source
        identity = ClientIdentity(peer: arrival.peer)
        self.isCounted = isCounted
        ownURL = url
        place = arrival.place
        server = HTTP1Server(stream: stream, session: worker.session, settings: worker.serverSettings)
        server.owner = self
    }

    func start() {
        server.exchange.record.client = source
        server.exchange.record.traits = peer.traits
        if worker.snapshot.log.access { askPeer() }
        server.serve()
    }

    /// What is known of the task under way.
    var record: TaskRecord {
        _read { yield server.exchange.record }
        _modify { yield &server.exchange.record }
    }

    /// Whether the configuration in force lets this client in.
    var isAllowed: Bool {
        if judged !== worker.snapshot {
            judged = worker.snapshot
            // Who may connect to a Unix socket, its file's permissions say.
            wasAllowed = source.address.map { address in
                worker.snapshot.proxy.allowClients.contains { $0.contains(address.ip.bytes) }
            } ?? true
        }
        return wasAllowed
    }

    /// Keeps what follows a step until the task is resumed, if it is suspended.
    /// - Returns: whether it is.
    func holdsBack(_ work: @escaping () -> Void) -> Bool {
        guard suspension.isSuspended else { return false }
        suspension = .holding(work)
        return true
    }

    // MARK: Requests to the proxy

    private func requestToProxy() {
        guard isAllowed else { return server.refuseRequest(.clientNotAllowed(source.address?.ip.description ?? source.description)) }
        identity = ClientIdentity(peer: identity.peer)
        let (users, runs) = (worker.users, worker.shared.runs)
        if users == nil, runs.isEmpty { return performRequest() }
        let credentials = server.readRequest { Credentials(in: $0.head, $0.bytes) }
        if let credentials, let token = RunToken(credentials) { return requestOfRun(runs.run(with: token), users) }
        if !runs.isEmpty, awaitsRuns({ [unowned self] in received(by: server) }) { return }
        run?.requested()
        guard let users else { return performRequest() }
        guard let credentials else {
            run?.challenged(asking: askedAuthority)
            return server.refuseRequest(.credentialsMissing)
        }
        state = .authenticating
        server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
        users.verify(credentials, on: worker.loop) { [weak self] ruling in
            self?.verified(credentials, ruling, by: users)
        }
    }

    /// - Parameter run: nil: it is over, or another proxy's.
    private func requestOfRun(_ run: Run?, _ users: UserVerifier?) {
        identity.run = run
        run?.requested()
        if let run, run.hasChallenges { run.answeredChallenge(asking: askedAuthority) }
        guard let users, !identity.isLetIn(by: users) else { return performRequest() }
        server.refuseRequest(run == nil ? .runUnknown : .runWithoutUser)
    }

    private func verified(_ credentials: Credentials, _ ruling: UserVerifier.Ruling, by users: UserVerifier) {
        guard case .authenticating = state else { return }
        if holdsBack({ [unowned self] in verified(credentials, ruling, by: users) }) { return }
        state = .open
        server.clearDeadline()
        switch ruling {
        case .right:
            identity.user = users.user(named: credentials.user)
            // A reload may have come meanwhile.
            if worker.users.map(identity.isLetIn) != false { performRequest() } else { server.refuseRequest(.credentialsWrong) }
        case .wrong: server.refuseRequest(.credentialsWrong)
        case .notCompared: server.refuseRequest(.credentialsNotCompared(limit: UserVerifier.longestQueue))
        }
    }

    private func performRequest() {
        switch server.readRequest({ RequestDestination.of($0.head, $0.bytes) }) {
        case .proxyItself: server.refuseRequest(.askedForProxyItself(url: ownURL ?? server.url))
        case .malformed(let error):
            record.forgetPath()
            server.refuseRequest(.badAuthority(error))
        case .malformedTunnel(let defect): server.refuseRequest(.badConnectTarget(defect))
        case .unsupportedScheme(let url):
            record.forgetPath()
            server.refuseRequest(.unsupportedScheme(url))
        case .tunnel(let authority):
            record.authority = authority.canonical
            guard awaitsPeer(for: authority.canonical) else { return requestTunnel(authority) }
            identify { [unowned self] in requestTunnel(authority) }
        case .url(let named, let wanted):
            guard let (authority, purpose) = settled(named, wanted) else { return }
            record.authority = authority.canonical
            guard awaitsPeer(for: authority.canonical) else { return requestURL(authority, purpose) }
            identify { [unowned self] in requestURL(authority, purpose) }
        }
    }

    private func requestTunnel(_ authority: Authority) {
        asked = authority
        switch decide(authority.canonical, for: .secure) {
        case .refuse(let error): server.refuseRequest(error)
        case .relay(let route), .tunnel(let route): connect(route)
        }
    }

    private func requestURL(_ authority: Authority, _ purpose: Purpose) {
        switch decide(authority.canonical, for: purpose) {
        case .refuse(let error): server.refuseRequest(error)
        case .relay(let route): beginExchange(route)
        case .tunnel: server.refuseRequest(.cannotTunnelURL(authority.description))
        }
    }

    private func decide(_ authority: Authority, for purpose: Purpose) -> Decision {
        record.authority = authority
        if hasPassed(authority) { return .refuse(.loop(authority.description)) }
        let via = server.readRequest { $0.head.via(in: $0.bytes) }
        let decision = worker.decide(authority, for: purpose, client: Route.Client(place: place, asker: .client(peer), via: via))
        if case .refuse = decision {
            let entry = worker.snapshot.entry(for: authority.host, port: authority.port)
            record.entry = entry?.pattern
            record.entrySlot = worker.shared.slots.place(of: entry)
        }
        return decision
    }

    /// Whether the request in hand has come round to this proxy again.
    private func hasPassed(_ authority: Authority) -> Bool {
        guard server.request.hasVia else { return false }
        return server.readRequest { $0.head.hasPassed(worker.shared.loops.pseudonym(for: authority), in: $0.bytes) }
    }

    // MARK: Requests inside CONNECT

    /// The authority is settled.
    private func requestInside(_ settled: Route) {
        var route = settled
        record.authority = route.authority
        if route.snapshot !== worker.snapshot {
            if let withdrawal { return fail(withdrawal) }
            if awaitsPeer(for: route.authority) { return identify { [unowned self] in requestInside(settled) } }
            guard case .relay(let fresh) = worker.decide(route.authority, for: .secure, client: client(as: route.client)) else {
                return fail("after a reload this host may no longer be intercepted")
            }
            route = fresh
            state = .inside(fresh)
        }
        run?.requestedInside()
        let connected = asked ?? route.authority
        if let misdirectedName {
            return server.refuseRequest(
                .misdirected(Misdirection(serverName: misdirectedName), connected: connected))
        }
        let misdirection: Misdirection? = server.readRequest { view in
            guard let source = RequestDestination.disagreement(of: view.head, view.bytes, with: connected) else {
                return nil
            }
            return Misdirection(source, view.bytes)
        }
        if let misdirection { return server.refuseRequest(.misdirected(misdirection, connected: connected)) }
        if let refusalInside { return server.refuseForGood(refusalInside) }
        if hasPassed(route.authority) { return server.refuseRequest(.loop(route.authority.description)) }
        beginExchange(route)
    }

    private func beginExchange(_ route: Route) {
        record.entry = route.destination.source?.pattern
        record.entrySlot = route.slot
        if server.request.method.countsForwards {
            switch server.readRequest({ $0.head.maxForwards(in: $0.bytes) }) {
            case .malformed: return server.refuseRequest(.badMaxForwards)
            case .hops(0): return answerAsFinalRecipient()
            case .hops, .unlimited: break
            }
        }
        exchangeRoute = route
        exchangeTimeout = nil
        guard let layers = route.rules else { return server.begin(to: route.destination, over: takeKept(for: route)) }
        beginShaped(route, by: layers)
    }

    private func answerAsFinalRecipient() {
        let keeps = server.head.framing == .none && server.head.keepsAlive && !worker.isDraining
        let answer = server.readRequest { FinalRecipient.answer(to: $0.head, $0.bytes, keepsConnection: keeps) }
        record.status = 200
        worker.session.complete(&record)
        if keeps { server.dropHead() }
        server.answer(answer, then: keeps ? .nextRequest : .linger)
    }

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

    // MARK: The end

    /// Ends the connection for a reason that there is nobody to tell.
    func fail(_ cause: String) {
        record.failed(cause)
        worker.session.complete(&record)
        server.close()
    }

    /// The proxy stops: what is under way goes on, what rests goes.
    func drain() {
        switch state {
        case .relaying(let relay, _): drain(relay)
        // Nothing of it has been carried yet, and perhaps nothing ever will.
        case .awaitingHandshake, .verifying:
            server.setDeadline(afterNanoseconds: worker.snapshot.timeouts.drainTunnels.nanoseconds)
        default: server.drain(lastChance: WorkerContext.lastChanceNanoseconds)
        }
    }

    func drain(_ relay: Relay) {
        relay.drain(quietNanoseconds: worker.snapshot.timeouts.drainTunnels.nanoseconds, because: Self.stopped)
    }

    private static let stopped = "the proxy was stopped"

    /// Ends the connection whatever is under way.
    func stop() { cut(Self.stopped) }

    /// Ends both sides where they stand.
    func cut(_ cause: String) {
        if isUnanswered { record.failed(cause) }
        switch state {
        case .relaying(let relay, _): relay.cancel(because: cause)
        case .verifying(let verification):
            record.tunnelBegan(up: verification.bytesUp, down: verification.bytesDown)
            record.failed(cause)
            worker.session.complete(&record)
            server.abort()
        case .open, .inside:
            completeHeld(cause)
            server.stop(cause)
        default: server.stop(cause)
        }
    }

    /// Whether a request has begun of which nobody has told yet what became of it.
    private var isUnanswered: Bool {
        switch state {
        case .identifying, .authenticating, .connecting, .promised, .promisedRefusal, .awaitingHandshake, .securing:
            record.ended == nil
        case .open, .inside, .verifying, .relaying, .closed: false
        }
    }

    /// A request that its client doesn't wait for to the end leaves its line all the same.
    private func completeUnanswered() {
        guard isUnanswered else { return }
        if record.failure == nil { record.failed("the client's connection broke before it was answered") }
        worker.session.complete(&record)
    }

    /// The same for one whose body the rules write anew: the exchange that would complete its task has not begun.
    private func completeHeld(_ cause: String) {
        guard isOpen, heldTask != nil else { return }
        record.failed(cause)
        worker.session.complete(&record)
    }

    private var isOpen: Bool {
        switch state {
        case .open, .inside: true
        default: false
        }
    }

    /// Lets go of what the state holds.
    private func release() {
        switch state {
        case .connecting(let attempt): attempt.cancel()
        case .verifying(let verification): verification.cancel()
        case .promised(_, let upstream): worker.giveBack(upstream)
        case .promisedRefusal, .awaitingHandshake, .securing, .inside, .open, .identifying, .authenticating, .relaying, .closed:
            break
        }
        if let kept { worker.giveBack(kept) }
        kept = nil
    }

    /// Keeps a connection for the next request, if the configuration in force would have made it.
    func hold(_ upstream: UpstreamConnection) {
        if upstream.origin.hasRetired(upstream) { return upstream.close() }
        kept = upstream
        upstream.hold()
    }

    /// The configuration has changed: what is kept of an older one goes.
    func dropRetired() {
        guard let kept, kept.origin.hasRetired(kept) else { return }
        self.kept = nil
        kept.close()
    }

    func handshakeNamed(_ name: String) { misdirectedName = name }
}

extension ClientConnection: HTTP1ServerOwner {
    func received(by server: HTTP1Server) {
        if case .inside(let route) = state { requestInside(route) } else { requestToProxy() }
    }

    func receivedUnreadable(_ error: ProxyError, by server: HTTP1Server) {
        if case .open = state, !worker.shared.runs.isEmpty {
            identity = ClientIdentity(peer: identity.peer)
            if awaitsRuns({ [unowned self] in receivedUnreadable(error, by: server) }) { return }
            run?.requested()
        }
        server.refuseUnreadable(error)
    }

    func switched(to upstream: UpstreamConnection, by server: HTTP1Server) {
        guard let exchangeRoute else { return server.abort() }
        record.kind = .upgrade
        relay(
            with: upstream,
            as: Relayed(
                route: exchangeRoute, address: upstream.address, verdict: upstream.verdict, timeout: exchangeTimeout),
            received: server.requests.takeBuffer(), answered: upstream.responses.takeBuffer())
    }

    func keep(_ upstream: UpstreamConnection) { hold(upstream) }

    func handshakeBegan() {
        guard let run else { return }
        isAwaited = true
        run.stepBegan()
    }

    func handshakeEnded() {
        if isAwaited { run?.stepEnded() }
        isAwaited = false
    }

    func refused(_ error: ProxyError) {
        // Of a refusal that is shown inside it has been told.
        if refusalInside != nil { return }
        // Its program may have just not sent yet what it is asked for.
        if case .credentialsMissing = error { return }
        run?.refused(error.report, asking: record.authority)
    }

    func attemptReport() -> AttemptReport {
        { [worker, exchangeRoute] result in if let exchangeRoute { worker.report(result, of: exchangeRoute) } }
    }

    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>) {
        if let exchangeRoute { worker.report(result, of: exchangeRoute) }
    }

    func timedOut(_ server: HTTP1Server) {
        let timeouts = worker.snapshot.timeouts
        switch state {
        case .verifying where worker.isDraining, .awaitingHandshake where worker.isDraining: return fail(Self.stopped)
        case .verifying: return fail("the TLS handshake in the tunnel took too long")
        case .awaitingHandshake, .securing:
            record.failed("the client's TLS handshake took longer than \(timeouts.tlsHandshake)")
        case .identifying: record.failed("who the client is was not found out within \(timeouts.idleClient)")
        case .authenticating: record.failed("its password was not compared within \(timeouts.idleClient)")
        case .open, .inside: completeHeld("its body was not converted within \(timeouts.idleClient)")
        case .connecting, .promised, .promisedRefusal, .relaying, .closed: break
        }
        server.abort()
    }

    func clientHasGone(_ why: String) {
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

    func closed(_ server: HTTP1Server) {
        completeUnanswered()
        handshakeEnded()
        release()
        state = .closed
        ended(self)
    }
}
