import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity
package import PinproxySession
import PinproxyTLS
package import PinproxyTransport

/// One client's connection: CONNECT, TLS inside it, or a tunnel. ``ClientRequest`` has its requests, and
/// ``ConnectionState`` decides what happens next.
package final class ClientConnection {
    enum News {
        case upstream(Result<UpstreamConnection, UpstreamFailure>)
        case answered
        case secured(Result<Void, StreamError>)
        case judged(VerifiedTunnel.Ending)
    }

    /// What carries bytes after CONNECT, or after a switch of protocols.
    enum Carrier {
        case none
        case verifying(VerifiedTunnel)
        case relaying(Relay, Relayed)
    }

    let worker: WorkerContext
    let source: Endpoint
    /// Counts under `limits.clients`, since it owns the accepted socket.
    package let isCounted: Bool
    let place: ClientPlace
    /// The proxy's URL for this client, if the socket has no address.
    let ownURL: String?
    package let server: HTTP1Server
    /// The current request of HTTP/1.1.
    let request: ClientRequest
    /// Serves the inside of a CONNECT to a client that chose HTTP/2.
    var http2: HTTP2Server?
    // unchecked: its mutating methods call no other code.
    @exclusivity(unchecked) private(set) var state = ConnectionState()
    /// The process at the other end, as far as known.
    var peer: ClientPeer
    var inquiries = ClientInquiries()
    // unchecked: the current CONNECT is only stored whole.
    @exclusivity(unchecked) var tunnel: ClientTunnel?
    var carrier = Carrier.none
    var cause: String?
    /// A result that came while the task was suspended.
    private var pending: News?
    /// For a CONNECT that is being made.
    private var claim: MemoryClaim?
    /// Over HTTP/2, the client has ended its side.
    var hasLeft = false
    var shownTrust = ShownTrust.no
    /// The run waits for the TLS handshake, and for what follows it.
    private var isAwaited = false
    /// Made for CONNECT, or bound to this client.
    private var kept: UpstreamConnection?
    /// The snapshot of ``wasAllowed``.
    var judged: Snapshot?
    var wasAllowed = false
    private let ended: (ClientConnection) -> Void

    /// - Parameters:
    ///   - carrier: the stream of HTTP/2 on the proxy's own port that is the connection; nil: it has a socket.
    ///   - ended: called once, when the connection is closed.
    package init(
        worker: WorkerContext, stream: ByteStream, arrival: Arrival, isCounted: Bool, on carrier: Int32? = nil,
        url: String? = nil,
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
        server.streamNumber = carrier
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

    package var record: TaskRecord {
        _read { yield server.exchange.record }
        _modify { yield &server.exchange.record }
    }

    // MARK: What happens

    /// Each action is the caller's last step.
    func happened(_ event: ConnectionState.Event) {
        let action = state.received(event)
        if pending != nil, !state.isSuspended, event != .resume { dropPending() }
        claimMemory()
        perform(action)
    }

    /// A suspended task ended: its result must not reach the client's next CONNECT.
    private func dropPending() {
        guard case .upstream(.success(let upstream))? = pending.take() else { return }
        upstream.letGo()
    }

    /// A suspended task's result waits for its resumption: a reload may come first.
    func arrived(_ news: News) {
        if state.isSuspended { pending = news } else if let event = event(of: news) { happened(event) }
    }

    func takeUp() {
        if let news = pending.take() { arrived(news) }
    }

    private func claimMemory() {
        let isConnecting = state.isConnecting
        if isConnecting == (claim != nil) { return }
        claim = isConnecting ? MemoryClaim(on: worker.shared.pressure) : nil
    }

    // MARK: The upstream connection for the next request

    /// If it is still open, and as the policy in force would make it.
    func takeKept(for route: Route) -> UpstreamConnection? {
        guard let kept = kept.take() else { return nil }
        if !kept.isOver, !kept.origin.hasRetired(kept), kept.validUntil > worker.unixTime(),
            kept.origin.key == route.target.key
        {
            return kept
        }
        kept.letGo()
        return nil
    }

    /// Takes the kept connection for a tunnel's carrier.
    func takeKept() -> HTTP1Upstream? { kept.take() as? HTTP1Upstream }

    /// Keeps a connection for the next request, unless a reload retired it.
    func hold(_ upstream: UpstreamConnection) {
        if upstream.origin.hasRetired(upstream) { return upstream.letGo() }
        kept = upstream
        upstream.hold()
    }

    /// Keeps CONNECT's connection until the client is answered.
    func promise(_ upstream: UpstreamConnection) { kept = upstream }

    func holdPromised() {
        if let kept, kept.origin.key.layer.isShared { kept.hold() }
    }

    /// A reload retired the tunnel's connection.
    var isPromiseRetired: Bool {
        guard let kept, !kept.origin.key.layer.isShared else { return false }
        return kept.origin.isRetired
    }

    /// Closes a connection that a reload has retired.
    package func dropRetired() {
        // A tunnel's is judged after the answer.
        guard let kept, kept.origin.key.layer.isShared, kept.origin.hasRetired(kept) else { return }
        self.kept = nil
        kept.letGo()
    }

    func giveBackKept() {
        if let kept = kept.take() as? HTTP1Upstream { worker.giveBack(kept) }
    }
}

extension ClientConnection: HTTP1ServerOwner {
    package func handedOver(by server: HTTP1Server) { arrived(.answered) }

    package func lentStreamIsReadable(_ server: HTTP1Server) {
        if state.phase == .awaitingHandshake, !state.isSuspended {
            clientSpoke()
        } else {
            server.stream.wantsRead = false
        }
    }

    package func switched(to upstream: HTTP1Upstream, by server: HTTP1Server) {
        guard let route = request.route else { return server.abort() }
        record.kind = .upgrade
        carry(
            upstream,
            as: Relayed(route: route, address: upstream.address, verdict: upstream.verdict, timeout: request.timeout),
            received: server.requests.takeBuffer(), answered: upstream.responses.takeBuffer())
        happened(.upgraded)
    }

    package func keep(_ upstream: HTTP1Upstream) { hold(upstream) }

    package func secured(_ result: Result<Void, StreamError>) { arrived(.secured(result)) }

    package func lentStreamTimedOut(_ server: HTTP1Server) { happened(.deadline) }

    package func closed(_ server: HTTP1Server) {
        noteDeparture()
        if let http2 = http2.take() { http2.stop(cause ?? "the client's connection was closed") }
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
        // A run distinguishes its programs. The log's search may come too late for a short one.
        askForDecision()
        isAwaited = true
        run.stepBegan()
    }

    func handshakeEnded() {
        if isAwaited { run?.stepEnded() }
        isAwaited = false
    }
}
