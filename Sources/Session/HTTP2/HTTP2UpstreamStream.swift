import EventLoop
import HTTP2
import HTTPWire
import Transport

/// The upstream side of an exchange with an HTTP/2 origin: one stream of a shared connection.
final class HTTP2UpstreamStream {
    /// Interim heads that wait for the exchange.
    private static let mostHeads = 16

    private struct Head {
        var head = ResponseHead()
        var bytes: [UInt8] = []
        var ends = false
        var progress = HeadProgress.incomplete
    }

    private let upstream: HTTP2Upstream
    private var isLeased = true
    private var stream: HTTP2Stream?
    // unowned: the receiver keeps this object from begin(for:) to end(_:), which clears it.
    private unowned var receiver: (any UpstreamReceiver)?
    private var method = Method.other
    private var began = MonotonicTime(nanoseconds: 0)
    /// Not taken yet, oldest first.
    private var heads: [Head] = []
    private var response = Head()
    private let nothing = HeldBody()
    /// Of an upgrade.
    private var switchesTo: String?
    private var handshake: WebSocketHandshake?
    private var lacksUpgrades = false

    init(of upstream: HTTP2Upstream) {
        self.upstream = upstream
    }

    deinit { assert(!isLeased, "an upstream was leased and not ended") }

    private var connection: HTTP2Connection { upstream.connection }
}

extension HTTP2UpstreamStream: Upstream {
    var facts: UpstreamFacts {
        UpstreamFacts(isReused: upstream.exchanges > 1, mayRefuse: true, scope: upstream.scope, connection: upstream, stream: stream?.id.rawValue)
    }

    func begin(for receiver: any UpstreamReceiver) {
        self.receiver = receiver
        upstream.exchanges += 1
    }

    // MARK: Request

    func send(
        _ request: borrowing RequestView, to destination: Destination, edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        method = request.head.method
        began = upstream.loop.now
        if request.head.wantsUpgrade { return ask(request, to: destination, edits: edits) }
        let hasBody = !request.head.bodyLength.isEmpty
        HeadWriter.write(
            request: request.head, from: request.bytes, authority: destination.authority, defaultPort: destination.defaultPort,
            via: destination.via, edits: edits, into: &connection.block)
        return submit(hasBody: hasBody) ?? Discard()
    }

    private func submit(hasBody: Bool) -> HTTP2Stream? {
        guard let id = connection.session.submitRequest(connection.block, hasBody: hasBody) else {
            // It is leaving, which the exchange finds when it looks for the response.
            upstream.loop.afterThisTurn { [weak self] in self?.receiver?.upstreamIsReadable() }
            return nil
        }
        let stream = connection.adopt(id, for: self)
        self.stream = stream
        stream.begin(hasBody: hasBody, bytes: connection.block.bytes.count)
        connection.pumpLater()
        return stream
    }

    // MARK: Another protocol

    /// An upgrade becomes an extended CONNECT (RFC 8441), whose body follows the response.
    private func ask(_ request: borrowing RequestView, to destination: Destination, edits: HeadEdits) -> any BodySink {
        guard upstream.takesUpgrades else {
            upstream.loop.afterThisTurn { [weak self] in self?.receiver?.upstreamIsReadable() }
            lacksUpgrades = true
            return Discard()
        }
        let name = request.head.first(.upgrade)?.text(in: request.bytes).lowercased() ?? ""
        handshake = WebSocketHandshake(of: request)
        method = .connect
        HeadWriter.write(
            request: request.head, from: request.bytes, authority: destination.authority, defaultPort: destination.defaultPort,
            via: destination.via, connectProtocol: name, edits: edits, into: &connection.block)
        switchesTo = name
        _ = submit(hasBody: true)
        return Discard()
    }

    /// Its acceptance is `101` for who asked in HTTP/1.1.
    private func switching(_ head: Head) -> Head {
        guard let switchesTo, head.progress.isComplete, (200..<300).contains(head.head.status) else { return head }
        var text = Array("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: \(switchesTo)\r\n".utf8)
        if let answer = handshake?.answer { text += "Sec-WebSocket-Accept: \(answer)\r\n".utf8 }
        for field in head.head.fields where field.id != .contentLength { text += head.bytes[field.line.offsets] }
        text += "\r\n".utf8
        var switching = Head(bytes: text)
        var parser = HeadParser(limit: text.count + 1)
        switching.progress = parser.parseResponse(text.span, to: .get, into: &switching.head)
        return switching
    }

    // MARK: Response

    func wantsRead(_ wanted: Bool) { stream?.wantsRead = wanted }

    func receiveHead(of method: Method, limit: Int, readable: Bool) -> ResponseHeadProgress {
        if lacksUpgrades { return .failed(.upstreamClosed("takes no other protocols over HTTP/2 (RFC 8441)")) }
        guard let stream else { return .unprocessed("takes no new requests on this connection") }
        if !heads.isEmpty { return taken(heads.removeFirst(), limit: limit) }
        guard let failure = stream.failure else { return .incomplete }
        switch failure {
        case .reset(.refusedStream):
            upstream.refused()
            return .unprocessed("refused the stream")
        case .reset(.http11Required): return .needsOwnConnection
        case .malformed, .tooManyHeads: return .failed(.upstreamClosed(failure.cause))
        default: return .ended(failure.cause)
        }
    }

    private func taken(_ head: Head, limit: Int) -> ResponseHeadProgress {
        let head = switching(head)
        response = head
        switch head.progress {
        case .incomplete: return .incomplete
        case .malformed(let error): return .malformed(error)
        case .tooLarge: return .tooLarge
        case .tooManyFields: return .tooManyFields
        case .complete: return head.bytes.count > limit ? .tooLarge : .complete(ResponseTraits(head.head, isWhole: head.ends))
        }
    }

    func withResponse(_ body: (borrowing ResponseView) -> Void) {
        // A copy, since the view borrows from it.
        let response = response
        body(ResponseView(response.head, response.bytes.span))
    }

    var responseBody: any BodySource {
        if let stream, !response.head.isUpgrade { return stream }
        return nothing
    }

    // MARK: End

    func end(_ ending: UpstreamEnding) -> HTTP1Upstream? {
        receiver = nil
        if case .switched = ending, let stream, let switched = connection(over: stream) { return switched }
        if let stream {
            if case .abandoned = ending, !stream.isClosed { upstream.waitedInVain(since: began) }
            stream.leave(.cancel, delivering: false)
        }
        if isLeased {
            isLeased = false
            upstream.giveBack()
        }
        return nil
    }
}

extension HTTP2UpstreamStream {
    /// The stream as a connection of its own, whose end returns the lease.
    private func connection(over stream: HTTP2Stream) -> HTTP1Upstream? {
        let upstream = upstream
        let socket: HTTP2StreamSocket
        do throws(SystemError) {
            socket = try HTTP2StreamSocket(stream, loop: upstream.loop) { upstream.giveBack() }
        } catch {
            return nil
        }
        isLeased = false
        var made = Establishment(loop: upstream.loop, stream: socket.outside, origin: upstream.origin, address: upstream.address)
        made.verdict = upstream.verdict
        made.validUntil = upstream.validUntil
        made.metrics = upstream.metrics
        made.scope = upstream.scope
        return HTTP1Upstream(made, received: ByteBuffer(slabs: connection.slabs))
    }
}

extension HeadProgress {
    fileprivate var isComplete: Bool { if case .complete = self { true } else { false } }
}

extension HTTP2UpstreamStream: HTTP2StreamDoor {
    func received(_ place: HTTP2HeadPlace, ends: Bool) {
        guard receiver != nil else { return }
        var head = Head()
        head.ends = ends
        head.progress = connection.session.readResponse(place, to: method, into: &head.head, bytes: &head.bytes)
        guard heads.count < Self.mostHeads else { return stream?.refuse(.tooManyHeads) ?? () }
        heads.append(head)
        receiver?.responseBegan()
    }

    func streamIsReadable() { receiver?.upstreamIsReadable() }
    func streamIsWritable() { receiver?.upstreamIsWritable() }
}
