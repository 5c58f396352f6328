package import EventLoop
package import HTTPWire
package import Session
package import Transport

/// Answers the requests that arrive at a near door.
package protocol RequestHandler: AnyObject {
    /// A whole head arrived: ``HTTP1Server/withRequest(_:)`` lends it. Answer it with ``HTTP1Server/refuseRequest(_:)``,
    /// ``HTTP1Server/answer(_:then:)`` or ``HTTP1Server/begin(to:by:over:)``, at once or later.
    func received(by server: HTTP1Server)
    /// The bytes that arrived are no request. Answer with ``HTTP1Server/refuseUnreadable(_:)``, at once or later.
    func receivedUnreadable(_ error: ProxyError, by server: HTTP1Server)
    /// Decides whether a redirect of the exchange may be followed, as if the client had asked for its target.
    /// - Parameters:
    ///   - isAbroad: another origin was asked before, so the target gets no secret.
    ///   - request: as it would be sent there, with the whole URL.
    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling
    /// Reports connection attempts for the current request. Other tasks may make them, even after the handler is
    /// released.
    func attemptReport() -> AttemptReport
    /// A connection was tried for a request.
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>)
    /// The request is refused, or failed before anything of an answer was passed on.
    func refused(_ error: ProxyError)
    /// The deadline that the handler set for its request has passed.
    func timedOut(_ server: HTTP1Server)
    /// The client closed while the handler had its request in hand.
    func clientHasGone(_ why: String)
}

/// Owns the connection that an ``HTTP1Server`` serves.
package protocol HTTP1ServerOwner: AnyObject {
    /// The answer before ``HTTP1Server/AfterAnswer/handOver`` was written: the stream is the owner's.
    func handedOver(by server: HTTP1Server)
    /// The stream, which is the owner's, can be read, and no other owner of its events was set. Called until it is read
    /// or ``ByteStream/wantsRead`` is false.
    func lentStreamIsReadable(_ server: HTTP1Server)
    /// An exchange switched protocols: the stream is the owner's.
    func switched(to upstream: UpstreamConnection, by server: HTTP1Server)
    /// Keeps an upstream for this client's next request: no other client may use it.
    func keep(_ upstream: UpstreamConnection)
    /// The deadline that the owner set for its stream has passed.
    func lentStreamTimedOut(_ server: HTTP1Server)
    /// The client's TLS handshake ended, see ``HTTP1Server/serve()``.
    func secured(_ result: Result<Void, StreamError>)
    /// The connection is closed. Called once.
    func closed(_ server: HTTP1Server)
}

/// An owner that answers every request itself: it has no exchange, and its stream isn't lent.
package protocol AnsweringOwner: HTTP1ServerOwner, RequestHandler {}

extension AnsweringOwner {
    package func receivedUnreadable(_ error: ProxyError, by server: HTTP1Server) { server.refuseUnreadable(error) }
    package func refused(_ error: ProxyError) {}
    package func lentStreamIsReadable(_ server: HTTP1Server) { server.abort() }
    package func lentStreamTimedOut(_ server: HTTP1Server) { server.abort() }
    package func switched(to upstream: UpstreamConnection, by server: HTTP1Server) { upstream.close() }
    package func keep(_ upstream: UpstreamConnection) { upstream.close() }
    package func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling { .pass }
    package func attemptReport() -> AttemptReport { { _ in } }
    package func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>) {}
}

/// What a server of HTTP/1.1 may take, as the configuration in force says: shared by those of a worker.
package final class HTTP1ServerSettings {
    package var idle: Duration = .zero
    package var idleNanoseconds: UInt64 = 0
    /// For the beginning of the next request.
    package var requestNanoseconds: UInt64 = 0
    package var requestHead = 0

    package init() {}
}

/// The near end of a connection that speaks HTTP/1.1: reads requests off it, one at a time, and writes answers
/// onto it. Serves clients of the proxy and the insides of intercepted connections.
///
/// Every state has a deadline; a connection that is over leaves its owner, and with that its socket.
package final class HTTP1Server: ByteStreamOwner {
    package enum Phase {
        /// A request's head is awaited, or has come in part.
        case awaitingRequest
        /// A request is with the handler.
        case held
        /// Its body is gathered for the handler.
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

    package enum AfterAnswer {
        case nextRequest
        /// The stream becomes the owner's.
        case handOver
        case linger
    }

    /// How long a client that was refused gets to read why.
    static let lingerNanoseconds: UInt64 = 5_000_000_000

    package let stream: ByteStream
    let session: LoopSession
    let settings: HTTP1ServerSettings
    /// Set once, before ``serve()``.
    // unowned: the owner keeps the server until closed(_:), and the server calls nothing after that.
    package unowned var owner: (any HTTP1ServerOwner)!
    /// Set with the owner.
    // unowned: it is the owner, or the owner keeps it as long as the server.
    package unowned var handler: (any RequestHandler)!
    package var phase = Phase.awaitingRequest
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
    @exclusivity(unchecked) package var head = RequestHead()
    /// How it is carried.
    @exclusivity(unchecked) package private(set) var framing = HTTP1Framing()
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
    package var lastUsed: MonotonicTime

    package init(stream: ByteStream, session: LoopSession, settings: HTTP1ServerSettings) {
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
    package func serve() {
        phase = .awaitingRequest
        stream.owner = self
        stream.wantsRead = true
        deadline.set(afterNanoseconds: settings.requestNanoseconds)
        if stream.holdsBytes { receiveRequest() }
    }

    /// How long the owner has for what it does with the request or the stream.
    package func setDeadline(afterNanoseconds nanoseconds: UInt64) { deadline.set(afterNanoseconds: nanoseconds) }
    package func clearDeadline() { deadline.clear() }

    package var isHeld: Bool { if case .held = phase { true } else { false } }
    var isAwaitingRequest: Bool { if case .awaitingRequest = phase { true } else { false } }
    package var isClosed: Bool { if case .closed = phase { true } else { false } }

    // MARK: Events

    package func streamIsReadable(_ stream: ByteStream) {
        switch phase {
        case .awaitingRequest: receiveRequest()
        case .exchanging:
            // A body that is made here doesn't come from the client.
            if made.map({ $0.body === requests }) ?? true, exchange.downstreamIsReadable() { return }
            if let error = receiveAhead() { exchange.downstreamIsGone(error) }
        case .held: if let error = receiveAhead() { handler.clientHasGone(error.description) }
        case .gathering: gather(readable: true)
        case .lingering: discard()
        case .lent: owner.lentStreamIsReadable(self)
        case .answering, .breakingOff, .closed: stream.wantsRead = false
        }
    }

    package func streamIsWritable(_ stream: ByteStream) {
        switch phase {
        case .exchanging: exchange.downstreamIsWritable()
        case .answering(let next): writeAnswer(then: next)
        case .gathering: writeContinue()
        default: break
        }
    }

    package func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) { owner.secured(result) }

    private func timedOut() {
        switch phase {
        case .awaitingRequest where !requests.isEmpty && !stream.isSecure:
            refuse(.requestStalled(after: settings.idle))
        case .awaitingRequest: close()
        case .gathering: gatheringTimedOut()
        case .held: handler.timedOut(self)
        case .lent: owner.lentStreamTimedOut(self)
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
            framing = parser.framing
            deadline.clear()
            if made != nil { made = nil }
            requests.begin(head: Int(head.length), framing: framing.body)
            phase = .held
            noteRequest()
            handler.received(by: self)
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
    package func readRequest<Result>(_ body: (borrowing RequestView) -> Result) -> Result {
        if let made { return body(made.head.view) }
        return requests.withUnread { body(RequestView(head, $0)) }
    }

    func withRequest(_ body: (borrowing RequestView) -> Void) { readRequest(body) }

    /// The handler doesn't need the head any more.
    package func dropHead() {
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
