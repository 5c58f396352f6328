import EventLoop
import HTTPWire
import Session
import Transport

/// Who gives the requests of an ``HTTP1Server`` their answers.
protocol HTTP1ServerOwner: AnyObject {
    /// A whole head has arrived: ``HTTP1Server/withRequest(_:)`` lends it. To be answered by one of
    /// ``HTTP1Server/refuseRequest(_:)``, ``HTTP1Server/answer(_:then:)`` and ``HTTP1Server/begin(to:by:over:)``,
    /// at once or later.
    func received(by server: HTTP1Server)
    /// What has come is no request. To be answered by ``HTTP1Server/refuseUnreadable(_:)``, at once or later.
    func receivedUnreadable(_ error: ProxyError, by server: HTTP1Server)
    /// The answer before ``HTTP1Server/AfterAnswer/handOver`` has been written: the stream is the owner's.
    func handedOver(by server: HTTP1Server)
    /// The stream, which is the owner's, can be read, and has been given no other owner of its events. Called until it
    /// is read or ``ByteStream/wantsRead`` is false.
    func lentStreamIsReadable(_ server: HTTP1Server)
    /// An exchange has become another protocol: the stream is the owner's.
    func switched(to upstream: UpstreamConnection, by server: HTTP1Server)
    /// Keeps an upstream for this client's next request: it is nobody else's.
    func keep(_ upstream: UpstreamConnection)
    /// Decides whether a redirect of the exchange may be followed, as if the client had asked for its target.
    /// - Parameters:
    ///   - isAbroad: another origin was asked before, so the target gets no secret.
    ///   - request: as it would be sent there, with the whole URL.
    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling
    /// Reports connection attempts for the current request. Other tasks may make them, even after the owner is
    /// released.
    func attemptReport() -> AttemptReport
    /// A connection was tried for a request.
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>)
    /// Its request is refused, or what it asked for failed before anything of an answer was passed on.
    func refused(_ error: ProxyError)
    /// The deadline that the owner set for something of its own has passed.
    func timedOut(_ server: HTTP1Server)
    /// The client has gone while the owner had its request in hand.
    func clientHasGone(_ why: String)
    /// The client's TLS handshake is over, see ``HTTP1Server/serve()``.
    func secured(_ result: Result<Void, StreamError>)
    /// The connection is over. Called once.
    func closed(_ server: HTTP1Server)
}

/// Of an owner that answers every request itself: none of this happens to it.
protocol AnsweringOwner: HTTP1ServerOwner {}

extension AnsweringOwner {
    func receivedUnreadable(_ error: ProxyError, by server: HTTP1Server) { server.refuseUnreadable(error) }
    func refused(_ error: ProxyError) {}
    func lentStreamIsReadable(_ server: HTTP1Server) { server.abort() }
    func switched(to upstream: UpstreamConnection, by server: HTTP1Server) { upstream.close() }
    func keep(_ upstream: UpstreamConnection) { upstream.close() }
    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling { .pass }
    func attemptReport() -> AttemptReport { { _ in } }
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>) {}
}

/// What a server of HTTP/1.1 may take, as the configuration in force says: shared by those of a worker.
final class HTTP1ServerSettings {
    var idle: Duration = .zero
    var idleNanoseconds: UInt64 = 0
    /// For the beginning of the next request.
    var requestNanoseconds: UInt64 = 0
    var requestHead = 0
}

/// The near end of a connection that speaks HTTP/1.1: reads requests off it, one at a time, and writes answers
/// onto it. Serves clients of the proxy and the insides of intercepted connections.
///
/// Every state has a deadline; a connection that is over leaves its owner, and with that its socket.
final class HTTP1Server: ByteStreamOwner {
    enum Phase {
        /// A request's head is awaited, or has come in part.
        case awaitingRequest
        /// A request is with the owner.
        case held
        /// Its body is gathered for the owner.
        case gathering
        /// Bytes of the proxy's own are on their way to the client.
        case answering(then: AfterAnswer)
        case exchanging
        /// The stream is the owner's, e.g. for a handshake or a tunnel.
        case lent
        /// All is said; the client's last bytes are read away, so that they don't destroy what was said.
        case lingering
        /// What was sent of a broken response is on its way; a reset follows.
        case breakingOff(DeliveryWatch)
        case closed
    }

    enum AfterAnswer {
        case nextRequest
        /// The stream becomes the owner's.
        case handOver
        case linger
    }

    /// How long a client that was refused gets to read why.
    static let lingerNanoseconds: UInt64 = 5_000_000_000

    let stream: ByteStream
    let session: LoopSession
    let settings: HTTP1ServerSettings
    /// Set once, before ``serve()``.
    // unowned: the owner keeps the server until closed(_:), and the server calls nothing after that.
    unowned var owner: (any HTTP1ServerOwner)!
    var phase = Phase.awaitingRequest
    let exchange: Exchange
    let deadline: Deadline

    /// Requests on their way from the client.
    let requests: MessagePipe
    /// Answers on their way to it.
    let answers: HTTP1Outlet
    /// The rewritten request, sent instead of the received one.
    var made: (head: OwnedRequest, body: any BodySource)?
    // Both are changed by the parser alone, which calls nobody.
    @exclusivity(unchecked) var parser: HeadParser
    /// The request that was parsed last.
    @exclusivity(unchecked) var head = RequestHead()
    var request = RequestTraits()
    var prefersHTML = false
    /// What becomes of the connection after the response under way.
    var persistence = ClientPersistence.close
    /// The client knows the end of that response's body by its length or its chunks, not by the connection's.
    var bodyIsFramed = true
    /// The client has ended its side cleanly; what it asked for is still answered.
    var hasEnded = false
    var answer: ByteBuffer
    /// The body that is being gathered, and who is told of it.
    var gathering: (collector: BodyCollector, clock: BodyClock, done: (BodyCollector.Outcome) -> Void)?
    /// When the last request was over; a connection used lately gets its next request answered before a stop.
    var lastUsed: MonotonicTime

    init(stream: ByteStream, session: LoopSession, settings: HTTP1ServerSettings) {
        self.stream = stream
        self.session = session
        self.settings = settings
        requests = MessagePipe(.requests, on: stream, received: ByteBuffer(slabs: session.slabs))
        answers = HTTP1Outlet(stream, slabs: session.slabs)
        answer = ByteBuffer(slabs: session.slabs)
        parser = HeadParser(limit: settings.requestHead)
        lastUsed = session.now
        exchange = Exchange(session: session)
        deadline = Deadline(loop: session.loop)
        deadline.bind(to: self) { $0.timedOut() }
        exchange.downstream = self
        stream.owner = self
    }

    /// Awaits requests: at first, and after the stream was lent.
    func serve() {
        phase = .awaitingRequest
        stream.owner = self
        stream.wantsRead = true
        deadline.set(afterNanoseconds: settings.requestNanoseconds)
        if stream.holdsBytes { receiveRequest() }
    }

    /// How long the owner has for what it does with the request or the stream.
    func setDeadline(afterNanoseconds nanoseconds: UInt64) { deadline.set(afterNanoseconds: nanoseconds) }
    func clearDeadline() { deadline.clear() }

    var isHeld: Bool { if case .held = phase { true } else { false } }
    var isAwaitingRequest: Bool { if case .awaitingRequest = phase { true } else { false } }
    var isLent: Bool { if case .lent = phase { true } else { false } }
    var isClosed: Bool { if case .closed = phase { true } else { false } }

    // MARK: Events

    func streamIsReadable(_ stream: ByteStream) {
        switch phase {
        case .awaitingRequest: receiveRequest()
        case .exchanging:
            // A body that is made here doesn't come from the client.
            if made.map({ $0.body === requests }) ?? true, exchange.downstreamIsReadable() { return }
            if let error = receiveAhead() { exchange.downstreamIsGone(error) }
        case .held: if let error = receiveAhead() { owner.clientHasGone(error.description) }
        case .gathering: gather(readable: true)
        case .lingering: discard()
        case .lent: owner.lentStreamIsReadable(self)
        case .answering, .breakingOff, .closed: stream.wantsRead = false
        }
    }

    func streamIsWritable(_ stream: ByteStream) {
        switch phase {
        case .exchanging: exchange.downstreamIsWritable()
        case .answering(let next): writeAnswer(then: next)
        case .gathering: writeContinue()
        default: break
        }
    }

    func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) { owner.secured(result) }

    private func timedOut() {
        switch phase {
        case .awaitingRequest where !requests.isEmpty && !stream.isSecure:
            refuse(.requestStalled(after: settings.idle))
        case .awaitingRequest: close()
        case .gathering: gatheringTimedOut()
        case .held, .lent: owner.timedOut(self)
        // The kernel goes on delivering what was said.
        case .lingering: close()
        case .breakingOff(let delivery): resetWhenDelivered(delivery)
        case .answering, .exchanging, .closed: abort()
        }
    }

    // MARK: Requests

    func receiveRequest() {
        repeat {
            switch requests.receive(limit: settings.requestHead) {
            case .received?: nextRequest()
            case .blocked?: return requests.rest()
            case .ended?:
                hasEnded = true
                // Requests that came before the end are still answered.
                if !nextRequest() { close() }
                return
            case .failed?: return abort()
            case nil:
                // No room for more: pipelined requests fill it, or one head that is too large.
                if nextRequest() { continue }
                return refuse(.requestHeadTooLarge(settings.requestHead))
            }
        } while isAwaitingRequest && stream.holdsBytes
    }

    /// Looks for a whole head in what was received; false if more must come.
    @discardableResult
    func nextRequest() -> Bool {
        parser.limit = settings.requestHead
        let progress = requests.withUnread { parser.parseRequest($0, into: &head) }
        switch progress {
        case .incomplete: return false
        case .tooLarge: refuse(.requestHeadTooLarge(settings.requestHead))
        case .tooManyFields: refuse(.tooManyRequestFields)
        case .malformed where beginsTLS: refuse(.tlsToPlainPort)
        case .malformed(let error):
            let defect = readRequest { RequestDestination.targetDefect(behind: error, $0.head, $0.bytes) }
            refuse(defect.map(ProxyError.badConnectTarget) ?? .badRequest(error))
        case .complete:
            parser.reset()
            deadline.clear()
            if made != nil { made = nil }
            requests.begin(head: Int(head.length), framing: head.framing)
            phase = .held
            noteRequest()
            owner.received(by: self)
        }
        return true
    }

    /// What came in the place of a request is a TLS handshake (RFC 8446 section 5.1).
    private var beginsTLS: Bool {
        !stream.isSecure && requests.withUnread { $0.count > 1 && $0[0] == 22 && $0[1] == 3 }
    }

    func noteRequest() {
        withRequest { view in
            noteTraits(of: view)
            exchange.record.began(view, number: session.takeNumber(), at: session.now)
        }
    }

    func noteTraits() { withRequest { noteTraits(of: $0) } }

    private func noteTraits(of view: borrowing RequestView) {
        request.method = view.head.method
        request.takesInterim = view.head.version == .http11
        request.expectsContinue = view.head.expectsContinue
        request.wantsUpgrade = view.head.wantsUpgrade
        request.hasVia = view.head.hasVia
        request.wantedPart = view.head.wantedPart
        request.hasBody = !view.head.bodyLength.isEmpty
        prefersHTML = view.head.first(.accept).map { Accept.prefersHTML(view.bytes.extracting($0.offsets)) } ?? false
    }

    /// Reads something out of the request in hand.
    func readRequest<Result>(_ body: (borrowing RequestView) -> Result) -> Result {
        if let made { return body(made.head.view) }
        return requests.withUnread { body(RequestView(head, $0)) }
    }

    func withRequest(_ body: (borrowing RequestView) -> Void) { readRequest(body) }

    /// The owner needs the head no more.
    func dropHead() {
        made = nil
        requests.dropHead()
    }

    /// Passes the request in hand on.
    /// - Parameter rules: what shapes it and judges the answer; nil: nothing does.
    func begin(to destination: Destination, by rules: ExchangeRules? = nil, over leased: UpstreamConnection?) {
        phase = .exchanging
        exchange.begin(request, to: destination, by: rules, over: leased)
    }
}
