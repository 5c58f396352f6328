import Configuration
import EventLoop
import HTTPWire
import Security
package import Session
import TLS
package import Transport

/// One client's connection: CONNECT, the client's TLS inside it, or a tunnel. What is asked over it is a ``ClientRequest``'s.
///
/// What happens next is decided by ``ConnectionState``.
package final class ClientConnection {
    /// A result that a CONNECT waits for.
    enum News {
        case upstream(Result<UpstreamConnection, UpstreamFailure>)
        case answered
        case secured(Result<Void, StreamError>)
        case judged(VerifiedTunnel.Ending)
    }

    /// What passes bytes by, once a CONNECT was answered or a protocol was switched.
    enum Carrier {
        case none
        case verifying(VerifiedTunnel)
        case relaying(Relay, Relayed)
    }

    let worker: WorkerContext
    let source: Endpoint
    /// It owns the accepted socket, and counts under `limits.clients`.
    package let isCounted: Bool
    let place: ClientPlace
    /// The proxy's as this client reaches it, where its socket doesn't tell.
    let ownURL: String?
    package let server: HTTP1Server
    let request: ClientRequest
    // Changed by code that calls nobody.
    @exclusivity(unchecked) private(set) var state = ConnectionState()
    /// Who is at the other end, as far as it is known.
    var peer: ClientPeer
    var inquiries = ClientInquiries()
    /// The CONNECT that the connection has become, or tries to become.
    // Stored whole.
    @exclusivity(unchecked) var tunnel: ClientTunnel?
    var carrier = Carrier.none
    /// Why the connection ends, for the log.
    var cause: String?
    /// What came while the task was suspended.
    private var pending: News?
    /// The memory that a CONNECT takes while it is made.
    private var claim: MemoryClaim?
    /// The run waits for the end of the TLS handshake.
    private var isAwaited = false
    /// An upstream connection for the next request: made for CONNECT, or bound to this client.
    private var kept: UpstreamConnection?
    /// The snapshot that ``wasAllowed`` was found by.
    var judged: Snapshot?
    var wasAllowed = false
    private let ended: (ClientConnection) -> Void

    /// - Parameter ended: called once, when the connection is closed.
    package init(
        worker: WorkerContext, stream: ByteStream, arrival: Arrival, isCounted: Bool, url: String? = nil,
        ended: @escaping (ClientConnection) -> Void
    ) {
        self.ended = ended
        self.worker = worker
        source = arrival.source
        peer = arrival.peer
        self.isCounted = isCounted
        ownURL = url
        place = arrival.place
        server = HTTP1Server(stream: stream, session: worker.session, settings: worker.serverSettings)
        request = ClientRequest(server, worker: worker)
        request.connection = self
        server.owner = self
        server.handler = request
    }

    package func start() {
        record.client = source
        record.traits = peer.traits
        if worker.snapshot.log.access { askPeer() }
        server.serve()
    }

    /// What is known of the current task.
    package var record: TaskRecord {
        _read { yield server.exchange.record }
        _modify { yield &server.exchange.record }
    }

    // MARK: What happens

    /// Does what follows from an event. Each action is the last step of what called this.
    func happened(_ event: ConnectionState.Event) {
        let action = state.received(event)
        if pending != nil, !state.isSuspended, event != .resume { dropPending() }
        claimMemory()
        perform(action)
    }

    /// A suspended task ended: its result must not reach another CONNECT of this client.
    private func dropPending() {
        guard case .upstream(.success(let upstream))? = pending.take() else { return }
        upstream.close()
    }

    /// A result arrived. That of a suspended task waits until it is resumed: a reload may come first.
    func arrived(_ news: News) {
        if state.isSuspended { pending = news } else if let event = event(of: news) { happened(event) }
    }

    /// The task was resumed.
    func takeUp() {
        if let news = pending.take() { arrived(news) }
    }

    private func claimMemory() {
        let isConnecting = state.isConnecting
        if isConnecting == (claim != nil) { return }
        claim = isConnecting ? MemoryClaim(on: worker.shared.pressure) : nil
    }

    // MARK: The upstream connection for the next request

    /// The upstream connection at hand, if the policy in force would have made it and it is still open.
    func takeKept(for route: Route) -> UpstreamConnection? {
        guard let kept = kept.take() else { return nil }
        if !kept.isOver, !kept.origin.hasRetired(kept), kept.validUntil > worker.unixTime(), kept.origin.key == route.target.key {
            return kept
        }
        kept.close()
        return nil
    }

    /// The upstream connection that was made for CONNECT.
    func takeKept() -> UpstreamConnection? { kept.take() }

    /// Keeps a connection for the next request, if the configuration in force would have made it.
    func hold(_ upstream: UpstreamConnection) {
        if upstream.origin.hasRetired(upstream) { return upstream.close() }
        kept = upstream
        upstream.hold()
    }

    /// Keeps the connection that was made for CONNECT until the client was answered.
    func promise(_ upstream: UpstreamConnection) { kept = upstream }

    func holdPromised() {
        if let kept, kept.origin.key.layer.isShared { kept.hold() }
    }

    /// A reload retired the connection that a tunnel was promised.
    var isPromiseRetired: Bool {
        guard let kept, !kept.origin.key.layer.isShared else { return false }
        return kept.origin.isRetired
    }

    /// The configuration has changed: connections of an older one are closed.
    package func dropRetired() {
        // A tunnel's is judged once the client was answered.
        guard let kept, kept.origin.key.layer.isShared, kept.origin.hasRetired(kept) else { return }
        self.kept = nil
        kept.close()
    }

    func giveBackKept() {
        if let kept = kept.take() { worker.giveBack(kept) }
    }
}

extension ClientConnection: HTTP1ServerOwner {
    package func handedOver(by server: HTTP1Server) { arrived(.answered) }

    package func lentStreamIsReadable(_ server: HTTP1Server) {
        if state.phase == .awaitingHandshake, !state.isSuspended { clientSpoke() } else { server.stream.wantsRead = false }
    }

    package func switched(to upstream: UpstreamConnection, by server: HTTP1Server) {
        guard let route = request.route else { return server.abort() }
        record.kind = .upgrade
        carry(
            upstream, as: Relayed(route: route, address: upstream.address, verdict: upstream.verdict, timeout: request.timeout),
            received: server.requests.takeBuffer(), answered: upstream.responses.takeBuffer())
        happened(.upgraded)
    }

    package func keep(_ upstream: UpstreamConnection) { hold(upstream) }

    package func secured(_ result: Result<Void, StreamError>) { arrived(.secured(result)) }

    package func lentStreamTimedOut(_ server: HTTP1Server) { happened(.deadline) }

    package func closed(_ server: HTTP1Server) {
        completeUnanswered()
        request.giveUp()
        handshakeEnded()
        release()
        happened(.closed)
        ended(self)
    }

    // MARK: Its run

    func handshakeBegan() {
        guard let run else { return }
        isAwaited = true
        run.stepBegan()
    }

    func handshakeEnded() {
        if isAwaited { run?.stepEnded() }
        isAwaited = false
    }
}
