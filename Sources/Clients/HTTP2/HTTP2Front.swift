import PinproxyEventLoop
import PinproxyHTTP2
import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// The proxy's own port for a client that speaks HTTP/2 there (an `https://` proxy). Each stream is a separate
/// connection to the proxy, over a socket pair, as if the client had opened one. CONNECT is a stream too (RFC 9113
/// section 8.5).
final class HTTP2Front: HTTP2ConnectionOwner {
    /// Takes the far end of a stream's socket, and what to do if it is aborted. False: there are too many clients.
    typealias Accept = (_ socket: consuming Descriptor, _ stream: HTTP2StreamID, _ aborted: @escaping () -> Void) ->
        Bool

    let connection: HTTP2Connection
    private let loop: EventLoop
    private let idleNanoseconds: UInt64
    private let accept: Accept
    private let noticed: (HTTP2Notice) -> Void
    private var ended: (() -> Void)?
    private let deadline: Deadline
    /// For a client without streams, once the proxy stops.
    private var lastChance: UInt64?

    /// - Parameter ended: called once.
    init(
        over stream: ByteStream, loop: EventLoop, slabs: SlabPool, idleNanoseconds: UInt64, accept: @escaping Accept,
        noticed: @escaping (HTTP2Notice) -> Void, ended: @escaping () -> Void
    ) throws(HTTP2Unavailable) {
        self.loop = loop
        self.idleNanoseconds = idleNanoseconds
        self.accept = accept
        self.noticed = noticed
        self.ended = ended
        connection = try HTTP2Connection(
            .server, over: stream, settings: HTTP2Settings(), loop: loop, slabs: slabs, idleNanoseconds: idleNanoseconds
        )
        deadline = Deadline(loop: loop)
        deadline.bind(to: self) { $0.connection.close() }
    }

    func start() {
        deadline.set(afterNanoseconds: idleNanoseconds)
        connection.start(for: self)
    }

    /// The proxy stops. Tunnels have a separate deadline.
    func drain(within nanoseconds: UInt64) {
        connection.announceGoAway()
        lastChance = nanoseconds
        if connection.streamCount == 0 { deadline.set(afterNanoseconds: nanoseconds) }
    }

    func received(_ place: HTTP2HeadPlace, on id: HTTP2StreamID, ends: Bool) {
        deadline.clear()
        do throws(SystemError) {
            let stream = try HTTP2FrontStream(id, of: connection, loop: loop)
            stream.receive(place, ends: ends, accept)
        } catch {
            connection.session.reset(id, .refusedStream)
        }
    }

    func received(_ defect: HTTP2Defect, on id: HTTP2StreamID) {}
    func answeredPing(_ opaque: UInt64) {}
    func connectionIsQuiet() {}
    func noticed(_ notice: HTTP2Notice, on connection: HTTP2Connection) { noticed(notice) }

    func connectionChanged(_ connection: HTTP2Connection) {
        guard connection.streamCount == 0 else { return }
        if connection.session.isGoingAway { return connection.close() }
        deadline.set(afterNanoseconds: lastChance ?? idleNanoseconds)
    }

    func connectionEnded(_ connection: HTTP2Connection, _ cause: String) {
        deadline.clear()
        ended.take()?()
    }
}

/// One stream of a client at the proxy's own port, as messages of HTTP/1.1 over a socket pair.
final class HTTP2FrontStream {
    private static let headLimit = 256 << 10

    private let connection: HTTP2Connection
    private let inside: ByteStream
    private let far: CInt
    private let answers: MessagePipe
    private let requests: HTTP1Outlet
    private var stream: HTTP2Stream!
    private var isTunnel = false
    private var method = Method.other
    private var parser = HeadParser(limit: headLimit)
    private var response = ResponseHead()
    private var isAnswered = false
    private var hasSent = false
    private var hasAnswered = false
    private var isOver = false

    init(_ id: HTTP2StreamID, of connection: HTTP2Connection, loop: EventLoop) throws(SystemError) {
        let pair = try Socket.pair()
        self.connection = connection
        inside = ByteStream(loop: loop, descriptor: Descriptor(owning: pair.0))
        far = pair.1
        answers = MessagePipe(.responses, on: inside, received: ByteBuffer(slabs: connection.slabs))
        requests = HTTP1Outlet(inside, slabs: connection.slabs)
        inside.owner = self
        // The stream retains this object until it closes.
        stream = connection.adopt(id, for: self)
    }

    func receive(_ place: HTTP2HeadPlace, ends: Bool, _ accept: HTTP2Front.Accept) {
        let socket = Descriptor(owning: far)
        if ends { stream.ended(TrailerSection()) }
        var head = RequestHead()
        var text: [UInt8] = []
        guard case .complete = connection.session.readRequest(place, into: &head, bytes: &text) else {
            return refuse("400")
        }
        method = head.method
        isTunnel = method == .connect
        let isWithBody = !head.bodyLength.isEmpty
        guard let request = isTunnel ? text : Self.absolute(text, head, place) else { return refuse("400") }
        guard accept(socket, stream.id, { [weak self] in self?.end(.cancel) }) else { return refuse("503") }
        requests.begin(inChunks: isWithBody && head.bodyLength == .unknown, from: stream) { $0 += request }
        if !isWithBody, !isTunnel { hasSent = true }
        inside.wantsRead = true
        carryRequest(readable: false)
    }

    /// The request in absolute form (RFC 9112 section 3.2.2), as a proxy gets it.
    private static func absolute(_ text: [UInt8], _ head: RequestHead, _ place: HTTP2HeadPlace) -> [UInt8]? {
        guard let host = head.host, place.scheme != .other else { return nil }
        let path = text[head.target.offsets].elementsEqual("*".utf8) ? [] : text[head.target.offsets]
        var request = Array(text[head.methodRange.offsets])
        request += place.scheme == .https ? " https://".utf8 : " http://".utf8
        request += text[host.offsets]
        request += path
        request += " HTTP/1.1\r\n".utf8
        for field in head.fields { request += text[field.line.offsets] }
        if head.bodyLength == .unknown { request += "Transfer-Encoding: chunked\r\n".utf8 }
        if head.bodyLength == .known(0), head.first(.contentLength) == nil { request += "Content-Length: 0\r\n".utf8 }
        return request + "\r\n".utf8
    }

    private func refuse(_ status: String) {
        connection.block.clear()
        connection.block.append(":status", status)
        connection.submitResponse(stream.id, hasBody: false)
        stream.begin(hasBody: false, bytes: connection.block.bytes.count)
        end(.noError)
    }

    // MARK: To the proxy

    private func carryRequest(readable: Bool) {
        guard !isOver, !hasSent else { return flush() }
        switch stream.move(to: requests, readable: readable) {
        case .waiting: flush()
        case .blocked: break
        case .ended:
            hasSent = true
            if isTunnel { inside.endWriting() }
            endIfDone()
        case .truncated, .sourceFailed, .failed, .sinkFailed, .malformed: end(.cancel)
        }
    }

    private func flush() {
        if !isOver, (try? requests.flush()) == nil { end(.internalError) }
    }

    // MARK: From the proxy

    private func receive() {
        while !isOver, !isAnswered {
            switch answers.receive(limit: Self.headLimit) {
            case .received?: findHead()
            case .blocked?: return
            case .ended?, .failed?, nil: return end(.internalError)
            }
        }
        carryAnswer(readable: true)
    }

    private func findHead() {
        while !isOver, !isAnswered {
            let progress = answers.withUnread { parser.parseResponse($0, to: method, into: &response) }
            guard case .complete = progress else {
                if case .incomplete = progress { return }
                return end(.internalError)
            }
            parser.reset()
            answers.withUnread { HeadWriter.write(own: response, from: $0, into: &connection.block) }
            if response.isInterim {
                connection.session.submitInterim(stream.id, connection.block)
                connection.pumpLater()
                answers.begin(head: Int(response.length), framing: .none)
                answers.dropHead()
            } else {
                isAnswered = true
                let isOpen = isTunnel && (200..<300).contains(response.status)
                isTunnel = isOpen
                answers.begin(head: Int(response.length), framing: isOpen ? .untilClose : parser.framing.body)
                let hasBody = isOpen || !response.bodyLength.isEmpty
                connection.submitResponse(stream.id, hasBody: hasBody)
                stream.begin(hasBody: hasBody, bytes: connection.block.bytes.count)
                answers.dropHead()
            }
        }
    }

    private func carryAnswer(readable: Bool) {
        guard !isOver, isAnswered, !hasAnswered else { return }
        switch answers.move(to: stream, readable: readable) {
        case .waiting, .blocked: break
        case .ended:
            hasAnswered = true
            inside.wantsRead = false
            endIfDone()
        // A response that is cut stays so.
        case .truncated, .sourceFailed, .failed, .sinkFailed, .malformed: end(.internalError)
        }
    }

    // MARK: The end

    private func endIfDone() {
        // A response is the end of its request.
        if hasAnswered, hasSent || !isTunnel { end(.noError) }
    }

    private func end(_ code: HTTP2ErrorCode) {
        guard !isOver else { return }
        isOver = true
        // The stream may be this object's last holder.
        withExtendedLifetime(self) {
            stream.leave(code, delivering: code == .noError || hasAnswered)
            inside.stop()
        }
    }
}

extension HTTP2FrontStream: HTTP2StreamDoor {
    func received(_ place: HTTP2HeadPlace, ends: Bool) {}
    func streamIsReadable() { if stream.failure == nil { carryRequest(readable: true) } else { end(.cancel) } }
    func streamIsWritable() { carryAnswer(readable: false) }
}

extension HTTP2FrontStream: ByteStreamOwner {
    func streamIsReadable(_ stream: ByteStream) { receive() }
    func streamIsWritable(_ stream: ByteStream) { carryRequest(readable: false) }
}
