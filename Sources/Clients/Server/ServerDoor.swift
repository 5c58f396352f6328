import PinproxyEventLoop
package import PinproxyHTTPWire
import PinproxyRecords
package import PinproxySession
import PinproxyTransport

/// A request at the client's side, from its head to the end of its exchange, whatever version of HTTP carries it.
/// ``HTTP1Server`` serves all requests of a connection, one at a time; there is an ``HTTP2ServerStream`` for each.
///
/// What a version does differently it overrides; the implementations here do nothing.
package class ServerDoor: Downstream {
    package enum Stage {
        /// A request is awaited.
        case idle
        /// The handler decides.
        case held
        /// Its body is gathered for the handler.
        case gathering
        /// It is exchanged or answered.
        case answered
        /// The remainder of a cut response is being delivered.
        case delivering
        case closed
    }

    final let session: LoopSession
    final let settings: ServerSettings
    // unowned: set once, before the first request. It keeps the door, or is kept by what keeps the door.
    // unchecked, as below: stored once.
    @exclusivity(unchecked) package final unowned var handler: (any RequestHandler)!
    final let exchange: Exchange
    final let deadline: Deadline
    /// Where the received head is; nil: in ``headBytes``.
    final let received: MessagePipe?
    // Unchecked below: each is stored whole, or changed by the parser, which calls no other code.
    @exclusivity(unchecked) final var headBytes: [UInt8] = []
    /// The request that was parsed last.
    @exclusivity(unchecked) package final var head = RequestHead()
    @exclusivity(unchecked) final var request = RequestTraits()
    /// The client's stream of HTTP/2 that carries the requests; nil: another version of HTTP.
    @exclusivity(unchecked) final var streamNumber: Int32?
    @exclusivity(unchecked) final var refusalForm = RefusalForm.problem
    /// The rewritten request, sent instead of the received one.
    @exclusivity(unchecked) final var made: (head: OwnedRequest, body: any BodySource)?
    @exclusivity(unchecked) final var gathering:
        (collector: BodyCollector, clock: BodyClock, done: (BodyCollector.Outcome) -> Void)?

    init(session: LoopSession, settings: ServerSettings, received: MessagePipe? = nil) {
        self.session = session
        self.settings = settings
        self.received = received
        exchange = Exchange(session: session)
        deadline = Deadline(loop: session.loop)
        deadline.bind(to: self) { $0.timedOut() }
        exchange.downstream = self
    }

    // MARK: What a version does

    package var stage: Stage { .closed }
    /// Whether the connection can serve further requests if this one is answered with its body unread.
    package var servesOn: Bool { true }
    /// The method of a refused head, if it is known: a response to HEAD has no body.
    var unreadableMethod: Method { .get }
    var receivedBody: any BodySource { HeldBody() }
    /// The body was gathered: the handler decides again.
    func hold() {}
    func beginGathering() {}
    /// Tells a client that expects it to send its body.
    func sendContinue() {}
    /// An exchange begins.
    func beginExchange() {}
    /// Sends an answer of the proxy's own, in HTTP/1.1.
    /// - Parameter servesOn: another request may follow.
    func answer(_ bytes: [UInt8], servesOn: Bool) {}
    func timedOut() {}
    /// Drops the head, and the rewritten request.
    package func dropHead() { made = nil }
    /// Ends the request without a response that looks complete.
    package func abort() {}

    // MARK: Downstream

    package func wantsRead(_ wanted: Bool) {}

    package func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink { Nowhere() }

    package func exchangeEnded(_ ending: ExchangeEnding) {}

    package final var requestBody: any BodySource { made?.body ?? receivedBody }
    package final func withRequest(_ body: (borrowing RequestView) -> Void) { readRequest(body) }
    package final var guide: any ExchangeGuide { self }

    // MARK: The request

    package final func setDeadline(afterNanoseconds nanoseconds: UInt64) { deadline.set(afterNanoseconds: nanoseconds) }
    package final func clearDeadline() { deadline.clear() }

    package final var isHeld: Bool { if case .held = stage { true } else { false } }

    /// Calls `body` with the current request.
    package final func readRequest<Result>(_ body: (borrowing RequestView) -> Result) -> Result {
        if let made { return body(made.head.view) }
        if let received { return received.withUnread { body(RequestView(head, $0)) } }
        // A copy, since the view borrows from it.
        let bytes = headBytes
        return body(RequestView(head, bytes.span))
    }

    final func noteRequest() {
        withRequest { view in
            noteTraits(of: view)
            exchange.record.began(view, number: session.takeNumber(), at: session.now, on: streamNumber)
        }
    }

    private func noteTraits(of view: borrowing RequestView) {
        request.method = view.head.method
        request.takesInterim = view.head.version >= .http11
        request.expectsContinue = view.head.expectsContinue
        request.wantsUpgrade = view.head.wantsUpgrade
        request.hasVia = view.head.hasVia
        request.wantedPart = view.head.wantedPart
        request.hasBody = !view.head.bodyLength.isEmpty
        refusalForm = RefusalForm(for: view)
    }

    /// - Parameter body: sent after the head; nil: the client's.
    final func replaceRequest(with request: OwnedRequest, body: (any BodySource)? = nil) {
        made = (request, body ?? requestBody)
        withRequest { noteTraits(of: $0) }
    }

    /// - Parameter rules: nil: none.
    package final func begin(to destination: Destination, by rules: ExchangeRules? = nil, over leased: (any Upstream)?)
    {
        beginExchange()
        exchange.begin(request, to: destination, by: rules, over: leased)
    }

    // MARK: Refusals

    /// Answers the current request with an error, and completes its task.
    package final func refuseRequest(_ error: ProxyError) {
        complete(with: error)
        let servesOn = error.keepsConnection && servesOn
        if servesOn { dropHead() }
        refuse(error, method: head.method, servesOn: servesOn)
    }

    /// Refuses, and ends the connection.
    final func refuseForGood(_ error: ProxyError) {
        complete(with: error)
        refuse(error, method: head.method, servesOn: false)
    }

    /// Answers malformed bytes, and ends the connection.
    package final func refuseUnreadable(_ error: ProxyError) {
        complete(with: error)
        refuse(error, method: unreadableMethod, servesOn: false)
    }

    private func complete(with error: ProxyError) {
        exchange.record.refused(error.refusal(for: Requester(exchange.record)))
        handler.refused(error)
        session.complete(&exchange.record)
    }

    /// Nothing of a response has been sent yet.
    final func refuse(_ error: ProxyError, method: Method, servesOn: Bool) {
        let servesOn = servesOn && !session.isDraining
        // The request won't be sent: its copies are freed.
        gathering = nil
        made = nil
        let requester = Requester(exchange.record)
        answer(
            error.response(to: method, as: refusalForm, keepsConnection: servesOn, for: requester), servesOn: servesOn)
    }
}

extension ServerDoor: ExchangeGuide {
    package func attemptReport() -> AttemptReport { handler.attemptReport() }

    package func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination) {
        handler.attempted(result)
    }

    package func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling {
        handler.route(to: url, isAbroad: isAbroad, for: request)
    }

    package var cacheOwner: CacheKey.Owner? { handler.cacheOwner }

    package func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal {
        let error = ProxyError.exchange(failure, destination, of: exchange.record)
        handler.refused(error)
        return error.refusal(for: Requester(exchange.record))
    }
}

/// Takes bytes and drops them.
final class Nowhere: BodySink {
    var carried: UInt64 { 0 }
    func write(_ piece: RawSpan) -> Int { piece.byteCount }
}
