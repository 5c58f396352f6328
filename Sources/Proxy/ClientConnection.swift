import Configuration
import EventLoop
import HTTPWire
import Security
import Session
import TLS
import Transport

/// One client: what it asks of the proxy itself (CONNECT, or requests with whole URLs), and, behind a
/// CONNECT that is intercepted, the requests to the one authority that it named.
///
/// Every state has a deadline; a connection that is over leaves the worker, and with that its socket.
final class ClientConnection: ByteStreamOwner {
    enum Phase {
        /// A request's head is awaited, or has come in part.
        case awaitingRequest
        /// Credentials are being compared.
        case authenticating
        /// A CONNECT waits for its upstream connection.
        case connecting
        /// Bytes of the proxy's own are on their way to the client.
        case answering(then: AfterAnswer)
        /// The client's TLS handshake with a minted leaf.
        case securing
        /// An exchange is under way.
        case exchanging
        case relaying
        /// All is said; the client's last bytes are read away, so that they don't destroy what was said.
        case lingering
        case closed
    }

    enum AfterAnswer {
        case nextRequest
        case secure
        case tunnel
        case linger
    }

    let worker: Worker
    let stream: ByteStream
    let peer: SocketAddress
    private(set) var phase = Phase.awaitingRequest
    /// Requests on their way from the client.
    var requests: MessagePipe
    private var parser: HeadParser
    private(set) lazy var exchange = Exchange(client: self, worker: worker)
    private lazy var deadline = Deadline(loop: worker.loop) { [unowned self] in timedOut() }
    /// The client has ended its side in the proper way; what it asked for is still answered.
    var hasEnded = false
    private let isAllowed: Bool
    /// The head of the request that was parsed last is still in front of the received bytes.
    private var headIsPending = false
    /// When the last request was over; a connection used lately gets its next request answered before a stop.
    private var lastUsed: MonotonicTime

    /// What was promised by CONNECT.
    var route: Route?
    /// The upstream connection made for CONNECT, until the first request takes it.
    var leased: UpstreamConnection?
    private var attempt: UpstreamAttempt?
    private var relay: Relay?
    private var answer: ByteBuffer
    /// The client's SNI isn't the authority of CONNECT: its first request is answered 421.
    private var misdirectedName: String?

    init(worker: Worker, stream: ByteStream, peer: SocketAddress, isAllowed: Bool) {
        self.worker = worker
        self.stream = stream
        self.peer = peer
        self.isAllowed = isAllowed
        requests = MessagePipe(slabs: worker.slabs)
        answer = ByteBuffer(slabs: worker.slabs)
        parser = HeadParser(limit: worker.snapshot.limits.requestHead)
        lastUsed = worker.loop.now
        stream.owner = self
    }

    func start() {
        stream.wantsRead = true
        deadline.set(afterNanoseconds: worker.idleNanoseconds)
    }

    /// Whether this is the inside of an intercepted CONNECT.
    var isIntercepted: Bool { route != nil }

    // MARK: Events

    func streamIsReadable(_ stream: ByteStream) {
        switch phase {
        case .awaitingRequest: receiveRequest()
        case .exchanging: exchange.clientIsReadable()
        case .authenticating, .connecting: receiveAhead()
        case .lingering: discard()
        case .answering, .securing, .relaying, .closed: stream.wantsRead = false
        }
    }

    func streamIsWritable(_ stream: ByteStream) {
        switch phase {
        case .exchanging: exchange.clientIsWritable()
        case .answering(let next): writeAnswer(then: next)
        default: break
        }
    }

    private func timedOut() {
        switch phase {
        case .awaitingRequest where !requests.unread.isEmpty && !isIntercepted:
            refuse(.requestStalled(after: worker.snapshot.timeouts.idleClient))
        case .awaitingRequest: close()
        default: abort()
        }
    }

    // MARK: Requests

    private func receiveRequest() {
        repeat {
            switch requests.receive(from: stream, limit: worker.snapshot.limits.requestHead) {
            case .received?: nextRequest()
            case .blocked?: return requests.rest()
            case .ended?: return close()
            case .failed?: return abort()
            case nil: return refuse(.requestHeadTooLarge(worker.snapshot.limits.requestHead))
            }
        } while isAwaitingRequest && stream.holdsBytes
    }

    private var isAwaitingRequest: Bool {
        if case .awaitingRequest = phase { true } else { false }
    }

    private func receiveAhead() {
        switch requests.receive(from: stream, limit: SlabPool.slabSize) {
        case nil, .ended?: stream.wantsRead = false
        case .received?, .blocked?: break
        case .failed?: abort()
        }
    }

    /// Looks for a whole head in what was received.
    private func nextRequest() {
        let progress = unsafe parser.parseRequest(
            Span(_unsafeBytes: requests.unread), into: &exchange.request)
        switch progress {
        case .incomplete: break
        case .tooLarge: refuse(.requestHeadTooLarge(worker.snapshot.limits.requestHead))
        case .malformed(let error): refuse(.badRequest(error))
        case .complete:
            parser.reset()
            deadline.clear()
            headIsPending = true
            unsafe exchange.record.began(
                exchange.request, Span(_unsafeBytes: requests.unread), at: worker.loop.now)
            if isIntercepted { requestInside() } else { requestToProxy() }
        }
    }

    /// A request to the proxy itself.
    private func requestToProxy() {
        guard isAllowed else { return refuseRequest(.clientNotAllowed(peer.ip.description)) }
        guard let users = worker.users else { return performRequest() }
        guard let credentials = unsafe users.credentials(
            in: exchange.request, Span(_unsafeBytes: requests.unread))
        else { return refuseRequest(.credentialsMissing) }
        phase = .authenticating
        deadline.set(afterNanoseconds: worker.idleNanoseconds)
        users.verify(credentials, on: worker) { [weak self] isGood in
            guard let self, case .authenticating = phase else { return }
            deadline.clear()
            if isGood { performRequest() } else { refuseRequest(.credentialsWrong) }
        }
    }

    private func performRequest() {
        let request = exchange.request
        let outcome = unsafe RequestDestination.of(request, Span(_unsafeBytes: requests.unread))
        switch outcome {
        case .proxyItself: refuseRequest(.askedForProxyItself)
        case .malformed(let error): refuseRequest(.badAuthority(error))
        case .unsupportedScheme(let scheme): refuseRequest(.unsupportedScheme(scheme))
        case .tunnel(let authority):
            exchange.record.authority = authority
            switch worker.decide(authority, for: .secure) {
            case .refuse(let error): refuseRequest(error)
            case .relay(let route), .tunnel(let route): connect(route)
            }
        case .url(let authority, let purpose):
            exchange.record.authority = authority
            switch worker.decide(authority, for: purpose) {
            case .refuse(let error): refuseRequest(error)
            case .relay(let route): beginExchange(route, leased: nil)
            case .tunnel: refuseRequest(.cannotTunnelURL(authority.description))
            }
        }
    }

    /// A request behind a CONNECT: the authority is settled.
    private func requestInside() {
        guard var route else { return }
        exchange.record.authority = route.authority
        if route.snapshot !== worker.snapshot {
            guard case .relay(let fresh) = worker.decide(route.authority, for: .secure) else {
                return close()
            }
            if let leased, leased.origin.key != fresh.target.key {
                leased.close()
                self.leased = nil
            }
            route = fresh
            self.route = fresh
        }
        if let misdirectedName {
            return refuseRequest(.misdirected(asked: misdirectedName, connected: route.authority.description))
        }
        let agrees = unsafe RequestDestination.agrees(
            exchange.request, Span(_unsafeBytes: requests.unread), with: route.authority)
        guard agrees else {
            let host = unsafe exchange.request.host?.text(in: Span(_unsafeBytes: requests.unread)) ?? ""
            return refuseRequest(.misdirected(asked: host, connected: route.authority.description))
        }
        let leased = self.leased
        self.leased = nil
        beginExchange(route, leased: leased)
    }

    private func beginExchange(_ route: Route, leased: UpstreamConnection?) {
        phase = .exchanging
        headIsPending = false
        exchange.record.entry = route.entry
        exchange.begin(to: route, leased: leased)
    }

    /// The exchange is over and logged; the last byte of its response has been written.
    func exchangeEnded(keepsConnection: Bool) {
        guard case .exchanging = phase else { return }
        guard keepsConnection, !(hasEnded && requests.unread.isEmpty) else { return linger() }
        lastUsed = worker.loop.now
        phase = .awaitingRequest
        stream.wantsRead = true
        deadline.set(afterNanoseconds: worker.isDraining ? Worker.lastChanceNanoseconds : worker.idleNanoseconds)
        if requests.unread.isEmpty {
            requests.rest()
            if !stream.holdsBytes { return }
        }
        // Pipelined requests wait for their turn of the loop, so that a long row of them starves no one.
        worker.loop.afterThisTurn { [weak self] in
            guard let self, case .awaitingRequest = phase else { return }
            if stream.holdsBytes { receiveRequest() } else { nextRequest() }
        }
    }

    // MARK: CONNECT

    private func connect(_ route: Route) {
        self.route = route
        exchange.record.entry = route.entry
        skipHead()
        phase = .connecting
        if case .tls = route.target.layer, let idle = route.origin.takeIdle(at: worker.unixTime()) {
            leased = idle
            return answerConnect(route)
        }
        attempt = worker.connector.connect(to: route.target, timeouts: worker.snapshot.timeouts) {
            [unowned self] result in
            attempt = nil
            worker.report(result, of: route)
            switch result {
            case .success(let connection):
                leased = connection
                answerConnect(route)
            case .failure(let failure):
                self.route = nil
                refuseRequest(.upstream(failure, route))
            }
        }
    }

    private func answerConnect(_ route: Route) {
        let next: AfterAnswer = if case .tunnel = route.target.layer { .tunnel } else { .secure }
        say(Self.established, then: next)
    }

    private static let established = Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)

    private func beginSecuring() {
        guard let route else { return abort() }
        phase = .securing
        deadline.set(afterNanoseconds: worker.snapshot.timeouts.tlsHandshake.nanoseconds)
        do {
            let identity = try worker.context.leaves.identity(
                for: ServerName(host: route.authority.host), now: worker.unixTime())
            let early = requests.takeReceived()
            let connection = try stream.withDescriptor { descriptor in
                try TLSConnection(
                    server: worker.context.serverTLS, descriptor: descriptor, identity: identity,
                    ticketContext: SHA256Digest.of(Array(route.authority.description.utf8)).bytes,
                    alreadyReceived: early)
            }
            stream.secure(connection)
        } catch {
            fail("no certificate for \(route.authority): \(error)")
        }
    }

    func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {
        guard let route else { return }
        switch result {
        case .success:
            if let name = stream.withTLS({ $0.clientServerName }) ?? nil,
                !route.authority.isNamed(name)
            {
                misdirectedName = name
            }
            phase = .awaitingRequest
            stream.wantsRead = true
            deadline.set(afterNanoseconds: worker.idleNanoseconds)
            if stream.holdsBytes { receiveRequest() }
        case .failure(let error):
            fail("the client's TLS handshake failed: \(error)")
        }
    }

    private func beginTunnel() {
        guard let upstream = leased else { return abort() }
        leased = nil
        becomeRelay(with: upstream, record: exchange.record)
    }

    /// From here on bytes are carried unread: a tunnel, or another protocol after an upgrade.
    func becomeRelay(with upstream: UpstreamConnection, record: ExchangeRecord) {
        phase = .relaying
        deadline.clear()
        var record = record
        let relay = Relay(
            loop: worker.loop, downstream: stream, upstream: upstream.stream,
            received: requests.takeBuffer(), answered: upstream.responses.takeBuffer(),
            idleNanoseconds: worker.idleNanoseconds
        ) { [unowned self] ending in
            record.relayEnded(ending, up: self.relay?.bytesUp ?? 0, down: self.relay?.bytesDown ?? 0)
            worker.log(&record, of: self)
            leave()
        }
        self.relay = relay
        relay.start()
    }

    // MARK: Answers of the proxy's own

    /// Answers the request that was parsed last with an error, and logs it.
    private func refuseRequest(_ error: ProxyError) {
        exchange.record.refused(error)
        worker.log(&exchange.record, of: self)
        let request = exchange.request
        let keeps = error.keepsConnection && request.framing == .none && request.keepsAlive
        if keeps { skipHead() }
        refuse(error, method: request.method, keepsConnection: keeps)
    }

    private func skipHead() {
        if headIsPending { requests.skip(Int(exchange.request.length)) }
        headIsPending = false
    }

    /// Answers what can't be understood, or isn't whole, with an error, and logs it.
    private func refuse(_ error: ProxyError) {
        exchange.record.failedBeforeRequest(error, at: worker.loop.now)
        worker.log(&exchange.record, of: self)
        refuse(error, method: .get, keepsConnection: false)
    }

    /// Answers with an error; nothing of a response has been sent yet.
    func refuse(_ error: ProxyError, method: Method, keepsConnection: Bool) {
        let keeps = keepsConnection && !worker.isDraining
        let bytes = error.response(
            to: method, acceptsHTML: exchange.record.acceptsHTML, keepsConnection: keeps)
        say(bytes, then: keeps ? .nextRequest : .linger)
    }

    private func fail(_ cause: String) {
        exchange.record.failed(cause)
        worker.log(&exchange.record, of: self)
        if let leased {
            self.leased = nil
            worker.pool.giveBack(leased, idleNanoseconds: worker.upstreamIdleNanoseconds)
        }
        close()
    }

    private func say(_ bytes: [UInt8], then next: AfterAnswer) {
        bytes.withUnsafeBytes { answer.append(copying: $0) }
        deadline.set(afterNanoseconds: worker.idleNanoseconds)
        writeAnswer(then: next)
    }

    private func writeAnswer(then next: AfterAnswer) {
        phase = .answering(then: next)
        switch stream.write(answer.count, from: &answer) {
        case .blocked: return
        case .failed: return abort()
        case .done: answer.releaseIfEmpty()
        }
        switch next {
        case .nextRequest:
            phase = .exchanging
            exchangeEnded(keepsConnection: true)
        case .secure: beginSecuring()
        case .tunnel: beginTunnel()
        case .linger: linger()
        }
    }

    // MARK: The end

    /// Ends this side and waits a little for the client's, reading away what it still sends: closing
    /// with unread bytes would reset the connection and could destroy the answer on its way.
    private func linger() {
        releaseUpstream()
        stream.endWriting()
        if hasEnded { return close() }
        phase = .lingering
        stream.wantsRead = true
        deadline.set(afterNanoseconds: Worker.lingerNanoseconds)
        if stream.holdsBytes { discard() }
    }

    private func discard() {
        repeat {
            requests.skip(requests.unread.count)
            requests.rest()
            switch requests.receive(from: stream, limit: SlabPool.slabSize) {
            case .received?: continue
            case .blocked?: return requests.rest()
            case .ended?, .failed?, nil: return close()
            }
        } while stream.holdsBytes
    }

    /// The proxy stops: what is under way goes on, what rests goes.
    func drain() {
        switch phase {
        case .awaitingRequest where requests.unread.isEmpty:
            let rested = worker.loop.now - lastUsed
            if rested > Worker.lastChanceNanoseconds { return close() }
            deadline.set(afterNanoseconds: Worker.lastChanceNanoseconds - rested)
        default: break
        }
    }

    /// Ends the connection whatever is under way.
    func stop() {
        exchange.cancel()
        relay?.cancel()
        abort()
    }

    private func releaseUpstream() {
        attempt?.cancel()
        attempt = nil
        if let leased {
            self.leased = nil
            worker.pool.giveBack(leased, idleNanoseconds: worker.upstreamIdleNanoseconds)
        }
    }

    /// Closes in the proper way.
    private func close() {
        releaseUpstream()
        stream.sayGoodbye()
        leave()
    }

    /// Closes so that the client sees a break, not an end.
    func abort() {
        if case .closed = phase { return }
        releaseUpstream()
        stream.abort()
        leave()
    }

    private func leave() {
        if case .closed = phase { return }
        phase = .closed
        deadline.clear()
        stream.stop()
        worker.remove(self)
    }
}
