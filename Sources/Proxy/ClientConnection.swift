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
        /// A tunnel's TLS handshake passes by and is judged.
        case verifying
        /// An exchange is under way.
        case exchanging
        case relaying
        /// All is said; the client's last bytes are read away, so that they don't destroy what was said.
        case lingering
        /// What was sent of a broken response is on its way; a reset follows.
        case breakingOff
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
    var phase = Phase.awaitingRequest
    /// Requests on their way from the client.
    var requests: MessagePipe
    var parser: HeadParser
    private(set) lazy var exchange = Exchange(client: self, worker: worker)
    private(set) lazy var deadline = Deadline(loop: worker.loop) { [unowned self] in timedOut() }
    /// The client has ended its side in the proper way; what it asked for is still answered.
    var hasEnded = false
    /// The snapshot that ``isAllowed`` was found by.
    private var judged: Snapshot?
    private var wasAllowed = false
    /// The head of the request that was parsed last is still in front of the received bytes.
    var headIsPending = false
    /// When the last request was over; a connection used lately gets its next request answered before a stop.
    var lastUsed: MonotonicTime

    /// What was promised by CONNECT.
    var route: Route?
    /// The upstream connection made for CONNECT, until the first request takes it.
    var leased: UpstreamConnection?
    var attempt: UpstreamAttempt?
    /// Asks about the origin of a tunnel before it is promised.
    var probe: UpstreamProbe?
    var verification: VerifiedTunnel?
    var relay: Relay?
    private var answer: ByteBuffer
    /// Of a broken response: what has not arrived yet, and when that last changed.
    private var unconfirmed = 0
    private var lastDelivery = MonotonicTime(nanoseconds: 0)
    /// The client's SNI isn't the authority of CONNECT: its first request is answered 421.
    var misdirectedName: String?

    init(worker: Worker, stream: ByteStream, peer: SocketAddress) {
        self.worker = worker
        self.stream = stream
        self.peer = peer
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

    /// Whether the configuration in force lets this client in.
    var isAllowed: Bool {
        if judged !== worker.snapshot {
            judged = worker.snapshot
            wasAllowed = worker.snapshot.proxy.allowClients.contains { $0.contains(peer.ip.bytes) }
        }
        return wasAllowed
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
        case .answering, .securing, .verifying, .relaying, .breakingOff, .closed: stream.wantsRead = false
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
        case .verifying: fail("the TLS handshake in the tunnel took too long")
        // The kernel goes on delivering what was said.
        case .lingering: close()
        case .breakingOff: resetWhenDelivered()
        default: abort()
        }
    }

    // MARK: Answers of the proxy's own

    /// Answers the request that was parsed last with an error, and logs it.
    func refuseRequest(_ error: ProxyError) {
        exchange.record.refused(error)
        worker.log(&exchange.record, of: self)
        let request = exchange.request
        let keeps = error.keepsConnection && request.framing == .none && request.keepsAlive
        if keeps { skipHead() }
        refuse(error, method: request.method, keepsConnection: keeps)
    }

    func skipHead() {
        if headIsPending { requests.skip(Int(exchange.request.length)) }
        headIsPending = false
    }

    /// Answers what can't be understood, or isn't whole, with an error, and logs it.
    func refuse(_ error: ProxyError) {
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

    func fail(_ cause: String) {
        exchange.record.failed(cause)
        worker.log(&exchange.record, of: self)
        if let leased {
            self.leased = nil
            worker.pool.giveBack(leased, idleNanoseconds: worker.upstreamIdleNanoseconds)
        }
        close()
    }

    func say(_ bytes: [UInt8], then next: AfterAnswer) {
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
    func linger() {
        releaseUpstream()
        stream.endWriting()
        awaitEnd()
    }

    private func awaitEnd() {
        if hasEnded { return close() }
        phase = .lingering
        stream.wantsRead = true
        deadline.set(afterNanoseconds: Worker.lingerNanoseconds)
        if stream.holdsBytes { discard() }
    }

    /// Ends a response that was cut short: what was written still arrives, and can't pass for the whole.
    /// - Parameter isFramed: the client knows the body's end by its length or its chunks; else only a reset
    ///   tells that something is missing, and it has to wait until all has arrived, which it would destroy.
    func breakOff(isFramed: Bool) {
        releaseUpstream()
        if isFramed {
            stream.endAbruptly()
            awaitEnd()
        } else {
            phase = .breakingOff
            stream.wantsRead = false
            unconfirmed = stream.unconfirmed
            lastDelivery = worker.loop.now
            resetWhenDelivered()
        }
    }

    /// The kernel tells of confirmations only when asked.
    private func resetWhenDelivered() {
        let left = stream.unconfirmed
        if left < unconfirmed { lastDelivery = worker.loop.now }
        unconfirmed = left
        if left == 0 || worker.loop.now - lastDelivery > worker.idleNanoseconds { return abort() }
        deadline.set(afterNanoseconds: Worker.deliveryCheckNanoseconds)
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
        guard case .awaitingRequest = phase else { return }
        let rested = worker.loop.now - lastUsed
        if requests.unread.isEmpty, rested > Worker.lastChanceNanoseconds { return close() }
        deadline.set(afterNanoseconds: Worker.lastChanceNanoseconds)
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
        probe?.cancel()
        probe = nil
        verification?.cancel()
        verification = nil
        if let leased {
            self.leased = nil
            worker.pool.giveBack(leased, idleNanoseconds: worker.upstreamIdleNanoseconds)
        }
    }

    /// Closes in the proper way.
    func close() {
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

    func leave() {
        if case .closed = phase { return }
        phase = .closed
        deadline.clear()
        stream.stop()
        worker.remove(self)
    }
}
