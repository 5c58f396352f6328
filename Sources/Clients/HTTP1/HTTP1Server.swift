package import PinproxyEventLoop
package import PinproxyHTTPWire
package import PinproxySession
package import PinproxyTransport

package protocol HTTP1ServerOwner: AnyObject {
    /// The answer was written; the stream is the owner's (``HTTP1Server/AfterAnswer/handOver``).
    func handedOver(by server: HTTP1Server)
    /// The owner's stream can be read. Called until it is read or ``ByteStream/wantsRead`` is false.
    func lentStreamIsReadable(_ server: HTTP1Server)
    /// An exchange switched protocols: the stream is the owner's.
    func switched(to upstream: HTTP1Upstream, by server: HTTP1Server)
    /// Keeps an upstream that only this client may use.
    func keep(_ upstream: HTTP1Upstream)
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
    package func lentStreamIsReadable(_ server: HTTP1Server) { server.abort() }
    package func lentStreamTimedOut(_ server: HTTP1Server) { server.abort() }
    package func switched(to upstream: HTTP1Upstream, by server: HTTP1Server) { upstream.close() }
    package func keep(_ upstream: HTTP1Upstream) { upstream.close() }
}

/// The near end of an HTTP/1.1 connection: reads requests one at a time, and writes answers. Serves clients of the
/// proxy and the insides of intercepted connections. Every state has a deadline; a closed connection leaves its owner.
package final class HTTP1Server: ServerDoor, ByteStreamOwner {
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
    // unowned: set once, before serve(). The owner keeps the server until closed(_:), the server's last call.
    package unowned var owner: (any HTTP1ServerOwner)!
    package var phase = Phase.awaitingRequest

    let requests: MessagePipe
    let answers: HTTP1Outlet
    // unchecked: only the parser changes them, and it calls no other code.
    @exclusivity(unchecked) var parser: HeadParser
    @exclusivity(unchecked) package private(set) var framing = HTTP1Framing()
    /// The state of the connection after the current response.
    var persistence = ClientPersistence.close
    /// The response's body ends by its length or chunks, not with the connection.
    var bodyIsFramed = true
    /// The client has ended its side cleanly; its requests are still answered.
    var hasEnded = false
    /// The client has ended the connection, cleanly or not.
    package private(set) var clientHasLeft = false
    var answer: ByteBuffer
    /// When the last request ended.
    package var lastUsed: MonotonicTime

    package init(stream: ByteStream, session: LoopSession, settings: ServerSettings) {
        self.stream = stream
        requests = MessagePipe(.requests, on: stream, received: ByteBuffer(slabs: session.slabs))
        answers = HTTP1Outlet(stream, slabs: session.slabs)
        answer = ByteBuffer(slabs: session.slabs)
        parser = HeadParser(limit: settings.requestHead)
        lastUsed = session.now
        super.init(session: session, settings: settings, received: requests)
        stream.owner = self
    }

    /// Awaits requests, also after the owner has returned the stream.
    package func serve() {
        phase = .awaitingRequest
        stream.owner = self
        stream.wantsRead = true
        deadline.set(afterNanoseconds: settings.requestNanoseconds)
        if stream.holdsBytes { receiveRequest() }
    }

    package override var stage: Stage {
        switch phase {
        case .awaitingRequest: .idle
        case .held: .held
        case .gathering: .gathering
        case .answering, .exchanging, .lent, .lingering: .answered
        case .breakingOff: .delivering
        case .closed: .closed
        }
    }

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

    override func timedOut() {
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
            case .blocked?: return requests.releaseBuffer()
            case .ended?:
                hasEnded = true
                clientHasLeft = true
                // Requests that came before the end are still answered.
                if !nextRequest() { close() }
                return
            case .failed?:
                clientHasLeft = true
                return abort()
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

    /// The received bytes are malformed or incomplete.
    private func refuse(_ error: ProxyError) {
        refusalForm = .problem
        exchange.record.began(number: session.takeNumber(), at: session.now, on: streamNumber)
        deadline.clear()
        phase = .held
        handler.receivedUnreadable(error, by: self)
    }

    // MARK: The door

    package override func wantsRead(_ wanted: Bool) { stream.wantsRead = wanted }

    package override func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        write(response, kind, requestSent: requestSent, to: destination, edits: edits, from: body)
    }

    package override func exchangeEnded(_ ending: ExchangeEnding) { follow(ending) }
    override func answer(_ bytes: [UInt8], servesOn: Bool) { answer(bytes, then: servesOn ? .nextRequest : .linger) }
    override func sendContinue() { beginContinue() }
    package override func abort() { reset() }

    package override var servesOn: Bool { head.bodyLength == .none && framing.keepsAlive }
    override var receivedBody: any BodySource { requests }

    package override func dropHead() {
        super.dropHead()
        requests.dropHead()
    }

    override func beginExchange() { phase = .exchanging }
    override func beginGathering() { phase = .gathering }

    override func hold() {
        // The client hasn't read even `100 Continue`: an answer would follow a part of it.
        guard answer.isEmpty else { return abort() }
        phase = .held
    }
}
