import PinproxyEventLoop
import PinproxyHTTP2
import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// One request of an HTTP/2 client, with its stream.
final class HTTP2ServerStream: ServerDoor {
    private enum Phase {
        case held
        /// Its body is gathered for the handler.
        case gathering
        case exchanging
        /// An answer of the proxy's own is being sent.
        case answering(HeldBody)
        /// It carries another protocol.
        case relaying
        case closed
    }

    private let connection: HTTP2Connection
    /// The current request's stream.
    // Unchecked below: each is stored whole.
    @exclusivity(unchecked) private(set) var stream: HTTP2Stream!
    @exclusivity(unchecked) private var phase = Phase.held
    /// Its index in the server's list.
    @exclusivity(unchecked) var place = 0
    // unowned: the server keeps its doors until left(_:).
    private unowned let server: HTTP2Server
    /// The handshake of an extended CONNECT for a WebSocket.
    @exclusivity(unchecked) private var handshake: WebSocketHandshake?
    /// The origin has answered the handshake wrongly.
    @exclusivity(unchecked) private var hasWrongAnswer = false

    init(_ stream: HTTP2Stream, of server: HTTP2Server, session: LoopSession, settings: ServerSettings) {
        self.server = server
        self.stream = stream
        connection = server.connection
        super.init(session: session, settings: settings)
        streamNumber = stream.id.rawValue
        stream.hand(to: self)
    }

    /// For another request, after one that ended well.
    func beginAnew(_ id: HTTP2StreamID) {
        connection.adopt(id, for: self, in: &stream)
        streamNumber = id.rawValue
        phase = .held
    }

    // MARK: The request

    /// - Parameter isSecure: the connection is under TLS.
    func receive(_ place: HTTP2HeadPlace, ends: Bool, isSecure: Bool) {
        if ends { stream.ended(TrailerSection()) }
        switch connection.session.readRequest(place, into: &head, bytes: &headBytes) {
        case .complete where place.scheme == .other || isSecure && place.scheme == .http:
            refuseHead(.badRequest(WireError(.target, at: 0)))
        case .complete:
            if place.isExtendedConnect { connect() }
            noteRequest()
            request.needsUpgrade = place.isExtendedConnect
            handler.received(by: self)
        case .tooLarge: refuseHead(.requestHeadTooLarge(settings.requestHead))
        case .tooManyFields: refuseHead(.tooManyRequestFields)
        case .malformed(let error): refuseHead(.badRequest(error))
        case .incomplete: abort()
        }
    }

    /// An extended CONNECT (RFC 8441): bytes of the other protocol follow, which are no body of the request.
    private func connect() {
        let name = readRequest { $0.head.first(.upgrade)?.text(in: $0.bytes) ?? "" }
        var text = headBytes
        if name.lowercased() == "websocket" {
            let handshake = WebSocketHandshake()
            self.handshake = handshake
            text.removeLast(2)
            text += "Sec-WebSocket-Key: \(handshake.key)\r\n\r\n".utf8
        }
        guard let request = try? OwnedRequest(text) else { return }
        made = (request, HeldBody())
    }

    /// Refuses a head that is not a request.
    private func refuseHead(_ error: ProxyError) {
        // The door's previous request may have set another form.
        refusalForm = .problem
        exchange.record.began(number: session.takeNumber(), at: session.now, on: streamNumber)
        server.note(&exchange.record)
        handler.receivedUnreadable(error, by: self)
    }

    override var stage: Stage {
        switch phase {
        case .held: .held
        case .gathering: .gathering
        case .exchanging, .answering, .relaying: .answered
        case .closed: .closed
        }
    }

    override var unreadableMethod: Method { head.method }
    override var receivedBody: any BodySource { stream }
    override func hold() { phase = .held }
    override func beginGathering() { phase = .gathering }
    override func beginExchange() { phase = .exchanging }
    override func wantsRead(_ wanted: Bool) { stream.wantsRead = wanted }

    override func sendContinue() {
        connection.block.clear()
        connection.block.append(":status", "100")
        connection.session.submitInterim(stream.id, connection.block)
        connection.pumpLater()
    }

    override func timedOut() {
        switch phase {
        case .held: handler.timedOut(self)
        case .gathering: gatheringTimedOut()
        case .exchanging, .answering: abort()
        case .relaying, .closed: break
        }
    }

    // MARK: The response

    override func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        if kind == .upgrade {
            hasWrongAnswer = handshake?.isAnswered(by: response) == false
            if hasWrongAnswer { return Nowhere() }
        }
        HeadWriter.write(
            response: response.head, from: response.bytes, via: destination.via, edits: edits, into: &connection.block)
        submit(kind, hasBody: kind == .upgrade || !response.head.bodyLength.isEmpty)
        // An interim response has no body. The bytes after an upgrade aren't one.
        return kind == .final ? stream : Nowhere()
    }

    private func submit(_ kind: ResponseKind, hasBody: Bool) {
        if kind == .interim {
            connection.session.submitInterim(stream.id, connection.block)
            connection.pumpLater()
        } else {
            connection.submitResponse(stream.id, hasBody: hasBody)
            stream.begin(hasBody: hasBody, bytes: connection.block.bytes.count)
        }
    }

    /// - Parameter bytes: an answer in HTTP/1.1.
    override func answer(_ bytes: [UInt8], servesOn: Bool) {
        var parser = HeadParser(limit: bytes.count + 1)
        var head = ResponseHead()
        guard case .complete = parser.parseResponse(bytes.span, to: self.head.method, into: &head) else {
            return abort()
        }
        HeadWriter.write(own: head, from: bytes.span, into: &connection.block)
        let rest = bytes[Int(head.length)...]
        let body = HeldBody(Array(rest))
        submit(.final, hasBody: !rest.isEmpty)
        deadline.set(afterNanoseconds: settings.idleNanoseconds)
        phase = .answering(body)
        continueAnswer(body)
    }

    private func continueAnswer(_ body: HeldBody) {
        switch body.move(to: stream, readable: false) {
        case .ended: end(.noError, delivering: true)
        case .waiting, .blocked: break
        default: abort()
        }
    }

    override func exchangeEnded(_ ending: ExchangeEnding) {
        switch ending {
        case .finished(let kept):
            kept?.close()
            end(.noError, delivering: true, well: true)
        case .refused(let failure, let destination):
            if made != nil { made = nil }
            refuse(.exchange(failure, destination, of: exchange.record), method: head.method, servesOn: true)
        case .cut(.delivered, _): end(.internalError, delivering: true)
        case .cut(.reset, _): end(.internalError, delivering: false)
        case .switched(let upstream): relay(upstream)
        }
    }

    private func relay(_ upstream: HTTP1Upstream) {
        if hasWrongAnswer {
            upstream.close()
            return refuseRequest(.wrongWebSocketAnswer(host: exchange.record.authority?.host ?? ""))
        }
        do throws(SystemError) {
            let socket = try HTTP2StreamSocket(stream, loop: session.loop) {}
            phase = .relaying
            server.carry(upstream, to: socket.outside, for: self)
        } catch {
            upstream.close()
            exchange.record.failed("\(error)")
            session.complete(&exchange.record)
            end(.internalError, delivering: false)
        }
    }

    /// The client has sent and received everything. The relay may still carry the last bytes to the origin, for at most
    /// its timeout.
    var isRelayComplete: Bool {
        if case .relaying = phase { stream.isClosed && stream.failure == nil } else { false }
    }

    /// The relayed protocol has ended, and ends the stream.
    func relayEnded() {
        phase = .closed
        server.left(self, reusable: false)
    }

    // MARK: The end

    override func abort() { end(.internalError, delivering: false) }

    /// - Parameter well: the request is completely handled.
    private func end(_ code: HTTP2ErrorCode, delivering: Bool, well: Bool = false) {
        if case .closed = phase { return }
        phase = .closed
        let isPlain = made == nil && handshake == nil
        if gathering != nil { gathering = nil }
        if made != nil { made = nil }
        deadline.clear()
        stream.leave(code, delivering: delivering)
        server.left(self, reusable: well && isPlain)
    }

    /// Called for each door that is left. A stream with both messages complete doesn't know of its connection's end.
    func connectionEnded(_ cause: String) { gone(.connection(cause)) }

    /// The client has reset the stream, or its connection has ended.
    private func gone(_ failure: HTTP2Break) {
        switch phase {
        case .exchanging: exchange.downstreamIsGone(.stream(failure.cause))
        case .held, .gathering: handler.clientHasGone(failure.cause)
        case .answering: abort()
        case .relaying, .closed: break
        }
    }
}

extension HTTP2ServerStream: HTTP2StreamDoor {
    func received(_ place: HTTP2HeadPlace, ends: Bool) {}

    func streamIsReadable() {
        if let failure = stream.failure { return gone(failure) }
        switch phase {
        // A rewritten body doesn't come from the client. Its early bytes wait within the stream's window.
        case .exchanging: if made.map({ $0.body === stream }) ?? true { _ = exchange.downstreamIsReadable() }
        case .gathering: gather(readable: true)
        case .held, .answering, .relaying, .closed: break
        }
    }

    func streamIsWritable() {
        switch phase {
        case .exchanging: exchange.downstreamIsWritable()
        case .answering(let body): continueAnswer(body)
        case .held, .gathering, .relaying, .closed: break
        }
    }
}
