package import EventLoop
package import HTTPWire
package import Session
package import Transport

/// Answers the requests that arrive at a near door.
package protocol RequestHandler: AnyObject {
    /// A whole head arrived. Answer with ``HTTP1Server/refuseRequest(_:)``, ``HTTP1Server/answer(_:then:)`` or
    /// ``HTTP1Server/begin(to:by:over:)``, at once or later.
    func received(by server: HTTP1Server)
    /// The bytes that arrived are no request. Answer with ``HTTP1Server/refuseUnreadable(_:)``, at once or later.
    func receivedUnreadable(_ error: ProxyError, by server: HTTP1Server)
    /// Decides whether a redirect of the exchange may be followed, as if the client had asked for its target.
    /// - Parameters:
    ///   - isAbroad: another origin was asked before, so the target gets no secret.
    ///   - request: as it would be sent there, with the whole URL.
    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling
    /// Reports connection attempts for the current request. Other tasks may make them, even after the handler's end.
    func attemptReport() -> AttemptReport
    /// A connection was tried for a request.
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>)
    /// Refused, or failed before any byte of an answer.
    func refused(_ error: ProxyError)
    /// The deadline that the handler set for its request has passed.
    func timedOut(_ server: HTTP1Server)
    /// The client closed while the request was held.
    func clientHasGone(_ why: String)
}

package protocol HTTP1ServerOwner: AnyObject {
    /// The answer was written; the stream is the owner's (``HTTP1Server/AfterAnswer/handOver``).
    func handedOver(by server: HTTP1Server)
    /// The owner's stream can be read. Called until it is read or ``ByteStream/wantsRead`` is false.
    func lentStreamIsReadable(_ server: HTTP1Server)
    /// An exchange switched protocols: the stream is the owner's.
    func switched(to upstream: UpstreamConnection, by server: HTTP1Server)
    /// Keeps an upstream that only this client may use.
    func keep(_ upstream: UpstreamConnection)
    /// The deadline that the owner set for its stream has passed.
    func lentStreamTimedOut(_ server: HTTP1Server)
    /// The client's TLS handshake ended, see ``HTTP1Server/serve()``.
    func secured(_ result: Result<Void, StreamError>)
    /// The connection is closed. Called once.
    func closed(_ server: HTTP1Server)
}

/// An owner that answers every request itself, without exchanges.
package protocol AnsweringOwner: HTTP1ServerOwner, RequestHandler {}

extension AnsweringOwner {
    package func receivedUnreadable(_ error: ProxyError, by server: HTTP1Server) { server.refuseUnreadable(error) }
    package func refused(_ error: ProxyError) {}
    package func timedOut(_ server: HTTP1Server) { server.abort() }
    package func lentStreamIsReadable(_ server: HTTP1Server) { server.abort() }
    package func lentStreamTimedOut(_ server: HTTP1Server) { server.abort() }
    package func switched(to upstream: UpstreamConnection, by server: HTTP1Server) { upstream.close() }
    package func keep(_ upstream: UpstreamConnection) { upstream.close() }
    package func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling { .pass }
    package func attemptReport() -> AttemptReport { { _ in } }
    package func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>) {}
}

/// Limits of HTTP/1.1 servers, shared by those of a worker.
package final class HTTP1ServerSettings {
    package var idle: Duration
    package var idleNanoseconds: UInt64
    /// For the beginning of the next request.
    package var requestNanoseconds: UInt64
    package var requestHead = 16 << 10

    package init(waiting patience: Duration = .zero) {
        idle = patience
        idleNanoseconds = patience.nanoseconds
        requestNanoseconds = patience.nanoseconds
    }
}

/// The near end of an HTTP/1.1 connection: reads requests one at a time, and writes answers. Serves clients of the
/// proxy and the insides of intercepted connections. Every state has a deadline; a closed connection leaves its owner.
package final class HTTP1Server: ByteStreamOwner {
    package enum Phase {
        /// A request's head is awaited, or incomplete.
        case awaitingRequest
        case held
        /// Its body is gathered for the handler.
        case gathering
        /// The proxy's own bytes are being sent.
        case answering(then: AfterAnswer)
        case exchanging
        /// The stream is the owner's, e.g. for a handshake or a tunnel.
        case lent
        /// The client's last bytes are discarded, so that they don't destroy the answer.
        case lingering
        /// The rest of a cut response is being delivered; a reset follows.
        case breakingOff(DeliveryWatch)
        case closed
    }

    package enum AfterAnswer {
        case nextRequest
        /// The owner takes the stream over.
        case handOver
        case linger
    }

    /// For a refused client to read why.
    static let lingerNanoseconds: UInt64 = 5_000_000_000

    package let stream: ByteStream
    let session: LoopSession
    let settings: HTTP1ServerSettings
    // unowned: set once, before serve(). The owner keeps the server until closed(_:), the server's last call.
    package unowned var owner: (any HTTP1ServerOwner)!
    // unowned: set with the owner, which it is, or which keeps it as long as the server.
    package unowned var handler: (any RequestHandler)!
    package var phase = Phase.awaitingRequest
    let exchange: Exchange
    let deadline: Deadline

    let requests: MessagePipe
    let answers: HTTP1Outlet
    /// The rewritten request, sent instead of the received one.
    var made: (head: OwnedRequest, body: any BodySource)?
    // unchecked: only the parser changes them, and it calls nobody.
    @exclusivity(unchecked) var parser: HeadParser
    /// The request that was parsed last.
    @exclusivity(unchecked) package var head = RequestHead()
    @exclusivity(unchecked) package private(set) var framing = HTTP1Framing()
    var request = RequestTraits()
    var prefersHTML = false
    /// After the current response.
    var persistence = ClientPersistence.close
    /// The response's body ends by its length or chunks, not with the connection.
    var bodyIsFramed = true
    /// The client has ended its side cleanly; its requests are still answered.
    var hasEnded = false
    var answer: ByteBuffer
    var gathering: (collector: BodyCollector, clock: BodyClock, done: (BodyCollector.Outcome) -> Void)?
    /// When the last request ended.
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

    /// Awaits requests, also after the stream was lent.
    package func serve() {
        phase = .awaitingRequest
        stream.owner = self
        stream.wantsRead = true
        deadline.set(afterNanoseconds: settings.requestNanoseconds)
        if stream.holdsBytes { receiveRequest() }
    }

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
            // A rewritten body doesn't come from the client.
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
        // The kernel continues to deliver the answer.
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
                // The buffer is full: of pipelined requests, or of one large head.
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

    /// A TLS handshake (RFC 8446 section 5.1).
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

    /// Lends the current request.
    package func readRequest<Result>(_ body: (borrowing RequestView) -> Result) -> Result {
        if let made { return body(made.head.view) }
        return requests.withUnread { body(RequestView(head, $0)) }
    }

    func withRequest(_ body: (borrowing RequestView) -> Void) { readRequest(body) }

    package func dropHead() {
        made = nil
        requests.dropHead()
    }

    /// - Parameter rules: nil: none.
    func begin(to destination: Destination, by rules: ExchangeRules? = nil, over leased: UpstreamConnection?) {
        phase = .exchanging
        exchange.begin(request, to: destination, by: rules, over: leased)
    }
}
