import EventLoop
import HTTPWire
import Session
import Transport

/// Who gives the requests of an ``HTTP1Server`` their answers.
protocol HTTP1ServerOwner: AnyObject {
    /// A whole head has arrived: ``HTTP1Server/withRequest(_:)`` lends it. To be answered by one of
    /// ``HTTP1Server/refuseRequest(_:)``, ``HTTP1Server/answer(_:then:)`` and ``HTTP1Server/begin(to:over:)``,
    /// at once or later.
    func received(by server: HTTP1Server)
    /// The answer before ``HTTP1Server/AfterAnswer/handOver`` has been written: the stream is the owner's.
    func handedOver(by server: HTTP1Server)
    /// The stream, which is the owner's, can be read, and has been given no other owner of its events. Called until it
    /// is read or ``ByteStream/wantsRead`` is false.
    func lentStreamIsReadable(_ server: HTTP1Server)
    /// An exchange has become another protocol: the stream is the owner's.
    func switched(to upstream: UpstreamConnection, by server: HTTP1Server)
    /// Keeps an upstream for this client's next request: it is nobody else's.
    func keep(_ upstream: UpstreamConnection)
    /// A connection was tried for a request.
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>)
    /// The deadline that the owner set for something of its own has passed.
    func timedOut(_ server: HTTP1Server)
    /// The client has gone while the owner had its request in hand.
    func clientHasGone(_ why: String)
    /// The client's TLS handshake is over, see ``HTTP1Server/serve()``.
    func secured(_ result: Result<Void, StreamError>)
    /// The connection is over. Called once.
    func closed(_ server: HTTP1Server)
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
    private static let lingerNanoseconds: UInt64 = 5_000_000_000

    let stream: ByteStream
    let session: SessionManager
    let settings: HTTP1ServerSettings
    /// Set once, before ``serve()``.
    unowned var owner: (any HTTP1ServerOwner)!
    private(set) var phase = Phase.awaitingRequest
    let exchange: Exchange
    private let deadline: Deadline

    /// Requests on their way from the client.
    var requests: MessagePipe
    // Changed by the parser alone, which calls nobody.
    @exclusivity(unchecked) private var parser: HeadParser
    /// The request that was parsed last.
    @exclusivity(unchecked) private(set) var head = RequestHead()
    var request = RequestTraits()
    private var prefersHTML = false
    /// Bytes in front of the received ones that are the head's still.
    private(set) var headLength = 0
    /// What becomes of the connection after the response under way.
    var persistence = ClientPersistence.close
    /// The client knows the end of that response's body by its length or its chunks, not by the connection's.
    var bodyIsFramed = true
    /// The client has ended its side cleanly; what it asked for is still answered.
    private(set) var hasEnded = false
    private var answer: ByteBuffer
    /// When the last request was over; a connection used lately gets its next request answered before a stop.
    private var lastUsed: MonotonicTime

    init(stream: ByteStream, session: SessionManager, settings: HTTP1ServerSettings) {
        self.stream = stream
        self.session = session
        self.settings = settings
        requests = MessagePipe(slabs: session.slabs)
        answer = ByteBuffer(slabs: session.slabs)
        parser = HeadParser(limit: settings.requestHead)
        lastUsed = session.loop.now
        exchange = Exchange(session: session)
        deadline = Deadline(loop: session.loop)
        deadline.expired = { [unowned self] in timedOut() }
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
    private var isAwaitingRequest: Bool { if case .awaitingRequest = phase { true } else { false } }
    private var isClosed: Bool { if case .closed = phase { true } else { false } }

    // MARK: Events

    func streamIsReadable(_ stream: ByteStream) {
        switch phase {
        case .awaitingRequest: receiveRequest()
        case .exchanging: exchange.downstreamIsReadable()
        case .held: if let error = receiveAhead() { owner.clientHasGone(error.description) }
        case .lingering: discard()
        case .lent: owner.lentStreamIsReadable(self)
        case .answering, .breakingOff, .closed: stream.wantsRead = false
        }
    }

    func streamIsWritable(_ stream: ByteStream) {
        switch phase {
        case .exchanging: exchange.downstreamIsWritable()
        case .answering(let next): writeAnswer(then: next)
        default: break
        }
    }

    func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) { owner.secured(result) }

    private func timedOut() {
        switch phase {
        case .awaitingRequest where !requests.unread.isEmpty && !stream.isSecure:
            refuse(.requestStalled(after: settings.idle))
        case .awaitingRequest: close()
        case .held, .lent: owner.timedOut(self)
        // The kernel goes on delivering what was said.
        case .lingering: close()
        case .breakingOff(let delivery): resetWhenDelivered(delivery)
        case .answering, .exchanging, .closed: abort()
        }
    }

    // MARK: Requests

    private func receiveRequest() {
        repeat {
            switch requests.receive(from: stream, limit: settings.requestHead) {
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
    private func nextRequest() -> Bool {
        parser.limit = settings.requestHead
        let progress = unsafe parser.parseRequest(Span(_unsafeBytes: requests.unread), into: &head)
        switch progress {
        case .incomplete: return false
        case .tooLarge: refuse(.requestHeadTooLarge(settings.requestHead))
        case .tooManyFields: refuse(.tooManyRequestFields)
        case .malformed(let error):
            let defect = readRequest { RequestDestination.targetDefect(behind: error, $0.head, $0.bytes) }
            refuse(defect.map(ProxyError.badConnectTarget) ?? .badRequest(error))
        case .complete:
            parser.reset()
            deadline.clear()
            headLength = Int(head.length)
            phase = .held
            noteRequest()
            owner.received(by: self)
        }
        return true
    }

    private func noteRequest() {
        request.method = head.method
        request.takesInterim = head.version == .http11
        request.expectsContinue = head.expectsContinue
        request.wantsUpgrade = head.wantsUpgrade
        request.hasVia = head.hasVia
        prefersHTML = false
        withRequest { view in
            exchange.record.began(view, number: session.takeNumber(), at: session.loop.now)
            if let accept = view.head.first(.accept) {
                prefersHTML = Accept.prefersHTML(view.bytes.extracting(accept.offsets))
            }
        }
    }

    /// Reads something out of the request in hand.
    func readRequest<Result>(_ body: (borrowing RequestView) -> Result) -> Result {
        unsafe body(RequestView(head, Span(_unsafeBytes: requests.unread)))
    }

    func withRequest(_ body: (borrowing RequestView) -> Void) {
        unsafe body(RequestView(head, Span(_unsafeBytes: requests.unread)))
    }

    /// The owner needs the head no more.
    func dropHead() {
        requests.skip(headLength)
        requests.rest()
        headLength = 0
    }

    /// The head is on its way up, in other words.
    func headTaken() { headLength = 0 }

    /// Passes the request in hand on.
    /// - Parameter rules: what shapes it and judges the answer; nil: nothing does.
    func begin(to destination: Destination, by rules: ExchangeRules? = nil, over leased: UpstreamConnection?) {
        phase = .exchanging
        exchange.begin(to: destination, by: rules, over: leased)
    }

    // MARK: Answers of the proxy's own

    /// What this client would write into HTTPS_PROXY.
    var url: String {
        "\(stream.isSecure ? "https" : "http")://\(stream.localAddress.map { "\($0)" } ?? "127.0.0.1")"
    }

    /// Answers the request in hand with an error, and completes its task.
    func refuseRequest(_ error: ProxyError) {
        complete(with: error)
        let keeps = error.keepsConnection && head.framing == .none && head.keepsAlive
        if keeps { dropHead() }
        refuse(error, method: head.method, keepsConnection: keeps)
    }

    /// Answers what can't be understood, or isn't whole, with an error.
    private func refuse(_ error: ProxyError) {
        prefersHTML = false
        exchange.record.began(number: session.takeNumber(), at: session.loop.now)
        complete(with: error)
        refuse(error, method: .get, keepsConnection: false)
    }

    private func complete(with error: ProxyError) {
        exchange.record.refused(error.refusal)
        session.complete(&exchange.record)
    }

    /// Answers with an error; nothing of a response has been sent yet.
    func refuse(_ error: ProxyError, method: Method, keepsConnection: Bool) {
        let keeps = keepsConnection && !session.isDraining
        let bytes = error.response(to: method, acceptsHTML: prefersHTML, keepsConnection: keeps)
        answer(bytes, then: keeps ? .nextRequest : .linger)
    }

    func answer(_ bytes: [UInt8], then next: AfterAnswer) {
        bytes.withUnsafeBytes { answer.append(copying: $0) }
        deadline.set(afterNanoseconds: settings.idleNanoseconds)
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
        case .nextRequest: awaitNextRequest()
        case .handOver:
            phase = .lent
            owner.handedOver(by: self)
        case .linger: linger()
        }
    }

    // MARK: After an exchange

    /// Nothing is under way; the last byte of the answer has been written.
    func awaitNextRequest() {
        guard !(hasEnded && requests.unread.isEmpty) else { return linger() }
        lastUsed = session.loop.now
        phase = .awaitingRequest
        stream.wantsRead = true
        deadline.set(afterNanoseconds: settings.requestNanoseconds)
        if requests.unread.isEmpty {
            requests.rest()
            if !stream.holdsBytes { return }
        }
        // Pipelined requests wait for their turn of the loop, so that a long row of them starves no one.
        session.loop.afterThisTurn { [weak self] in
            guard let self, isAwaitingRequest else { return }
            if !requests.unread.isEmpty { nextRequest() }
            if isAwaitingRequest, stream.holdsBytes { receiveRequest() }
        }
    }

    /// The stream becomes the owner's within an exchange.
    func lend() {
        phase = .lent
        deadline.clear()
    }

    /// Receives, within bounds, what the client sends before its turn.
    func receiveAhead() -> StreamError? {
        switch requests.receive(from: stream, limit: SlabPool.slabSize) {
        case nil: stream.wantsRead = false
        case .received?: break
        case .blocked?: requests.rest()
        case .ended?:
            hasEnded = true
            stream.wantsRead = false
        case .failed(let error)?: return error
        }
        return nil
    }

    // MARK: The end

    /// Ends this side and waits a little for the client's, reading away what it still sends: closing
    /// with unread bytes would reset the connection and could destroy the answer on its way.
    func linger() {
        stream.endWriting()
        awaitEnd()
    }

    private func awaitEnd() {
        if hasEnded { return close() }
        phase = .lingering
        stream.wantsRead = true
        deadline.set(afterNanoseconds: Self.lingerNanoseconds)
        if stream.holdsBytes { discard() }
    }

    /// Ends a response that was cut short: what was written still arrives, and can't pass for the whole.
    /// - Parameter isFramed: the client knows the body's end by its length or its chunks; else only a reset
    ///   tells that something is missing, and it has to wait until all has arrived, which it would destroy.
    func breakOff(isFramed: Bool) {
        if isFramed {
            stream.endAbruptly()
            awaitEnd()
        } else {
            stream.wantsRead = false
            resetWhenDelivered(DeliveryWatch(at: session.loop.now))
        }
    }

    private func resetWhenDelivered(_ before: DeliveryWatch) {
        var delivery = before
        let isOver = delivery.isOver(on: stream, at: session.loop.now, patience: settings.idleNanoseconds)
        phase = .breakingOff(delivery)
        if isOver { abort() } else { deadline.set(afterNanoseconds: DeliveryWatch.interval) }
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
    /// - Parameter nanoseconds: how long a connection that was used a moment ago gets for one more request: it
    ///   may be on its way already.
    func drain(lastChance nanoseconds: UInt64) {
        guard isAwaitingRequest else { return }
        let rested = session.loop.now - lastUsed
        if requests.unread.isEmpty, rested > nanoseconds { return close() }
        deadline.set(afterNanoseconds: nanoseconds)
    }

    /// Ends whatever is under way.
    func stop(_ cause: String) {
        if exchange.isUnderWay { exchange.cancel(cause) }
        abort()
    }

    /// Closes cleanly.
    func close() {
        if isClosed { return }
        stream.sayGoodbye()
        leave()
    }

    /// Closes so that the client sees a break, not an end.
    func abort() {
        if isClosed { return }
        stream.abort()
        leave()
    }

    /// Whoever had the stream has closed it.
    func leave() {
        if isClosed { return }
        phase = .closed
        deadline.clear()
        stream.stop()
        owner.closed(self)
    }
}
