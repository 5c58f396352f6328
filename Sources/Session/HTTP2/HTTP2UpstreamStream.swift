import PinproxyEventLoop
import PinproxyHTTP2
import PinproxyHTTPWire
import PinproxyTransport

/// The upstream side of an exchange with an HTTP/2 origin: one stream of a shared connection. Reused for another
/// exchange after one that ended well.
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
    // Unchecked below: each is stored whole, or changed by the parser, which calls no other code.
    @exclusivity(unchecked) private var isLeased = true
    @exclusivity(unchecked) private var stream: HTTP2Stream?
    /// The object of the exchange before.
    @exclusivity(unchecked) private var used: HTTP2Stream?
    // unowned: the receiver keeps this object from begin(for:) to end(_:), which clears it.
    @exclusivity(unchecked) private unowned var receiver: (any UpstreamReceiver)?
    @exclusivity(unchecked) private var method = Method.other
    @exclusivity(unchecked) private var began = MonotonicTime(nanoseconds: 0)
    @exclusivity(unchecked) private var response = Head()
    /// All of the response has arrived.
    @exclusivity(unchecked) private var isHere = false
    /// The exchange hasn't taken it.
    @exclusivity(unchecked) private var isFresh = false
    /// Heads after it, oldest first.
    @exclusivity(unchecked) private var more: [Head] = []
    private let nothing = HeldBody()
    /// The upgrade that it carries.
    @exclusivity(unchecked) private var upgrade: UpgradeByStream?
    /// Its request, while the peer's settings are awaited: they say whether it takes one.
    @exclusivity(unchecked) private var waiting: FieldBlock?

    init(of upstream: HTTP2Upstream) {
        self.upstream = upstream
    }

    deinit { assert(!isLeased, "an upstream was leased and not ended") }

    /// Prepares it for another exchange.
    func beginAnew() {
        isLeased = true
        isFresh = false
    }

    private var connection: HTTP2Connection { upstream.connection }
}

extension HTTP2UpstreamStream: Upstream {
    var facts: UpstreamFacts {
        UpstreamFacts(
            isReused: upstream.exchanges > 1, mayRefuse: true, scope: upstream.scope, connection: upstream,
            stream: stream?.id.rawValue)
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
        HeadWriter.write(
            request: request.head, from: request.bytes, authority: destination.authority,
            defaultPort: destination.defaultPort,
            via: destination.via, edits: edits, into: &connection.block)
        return submit(hasBody: !request.head.bodyLength.isEmpty) ?? Discard()
    }

    private func submit(hasBody: Bool) -> HTTP2Stream? {
        let connection = connection
        guard let id = connection.submitRequest(hasBody: hasBody) else {
            // It is leaving, which the exchange finds when it looks for the response.
            lookLater()
            return nil
        }
        connection.adopt(id, for: self, in: &used)
        stream = used.take()
        stream?.begin(hasBody: hasBody, bytes: connection.block.bytes.count)
        return stream
    }

    private func lookLater() { upstream.loop.afterThisTurn { [weak self] in self?.receiver?.upstreamIsReadable() } }

    /// An upgrade becomes an extended CONNECT (RFC 8441). Its bytes follow the response.
    private func ask(_ request: borrowing RequestView, to destination: Destination, edits: HeadEdits) -> any BodySink {
        let upgrade = UpgradeByStream(of: request)
        self.upgrade = upgrade
        method = .connect
        HeadWriter.write(
            request: request.head, from: request.bytes, authority: destination.authority,
            defaultPort: destination.defaultPort,
            via: destination.via, connectProtocol: upgrade.protocolName, edits: edits, into: &connection.block)
        guard upstream.awaitsSettings else {
            askNow()
            return Discard()
        }
        waiting = connection.block
        upstream.whenSettled { [weak self] in
            guard let self, let waiting = waiting.take() else { return }
            connection.block = waiting
            askNow()
        }
        return Discard()
    }

    private func askNow() {
        if upstream.takesUpgrades { _ = submit(hasBody: true) } else { lookLater() }
    }

    // MARK: Response

    func wantsRead(_ wanted: Bool) { stream?.wantsRead = wanted }

    func receiveHead(of method: Method, limit: Int, readable: Bool) -> ResponseHeadProgress {
        guard let stream else {
            if waiting != nil { return .incomplete }
            return upgrade == nil || upstream.takesUpgrades
                ? .unprocessed("takes no new requests on this connection")
                : .needsOwnConnection("takes no other protocols over HTTP/2 (RFC 8441)")
        }
        if isFresh { return taken(limit: limit) }
        if !more.isEmpty {
            response = more.removeFirst()
            return taken(limit: limit)
        }
        guard let failure = stream.failure else { return .incomplete }
        switch failure {
        case .reset(.refusedStream):
            upstream.refused()
            return .unprocessed("refused the stream")
        case .unsent: return .unprocessed(failure.cause)
        case .reset(.http11Required): return .needsOwnConnection("asked for HTTP/1.1")
        case .malformed, .tooManyHeads: return .failed(.upstreamClosed(failure.cause))
        default: return .ended(failure.cause)
        }
    }

    private func taken(limit: Int) -> ResponseHeadProgress {
        isFresh = false
        switch response.progress {
        case .incomplete: return .incomplete
        case .malformed(let error): return .malformed(error)
        case .tooLarge: return .tooLarge
        case .tooManyFields: return .tooManyFields
        case .complete: break
        }
        if let upgrade, let text = upgrade.acceptance(response.head, response.bytes) {
            response.bytes = text
            var parser = HeadParser(limit: text.count + 1)
            _ = parser.parseResponse(response.bytes.span, to: .get, into: &response.head)
        }
        return response.bytes.count > limit
            ? .tooLarge : .complete(ResponseTraits(response.head, isWhole: response.ends || isHere))
    }

    func withResponse(_ body: (borrowing ResponseView) -> Void) {
        // Copies, since the view borrows from them.
        let (head, bytes) = (response.head, response.bytes)
        body(ResponseView(head, bytes.span))
    }

    var responseBody: any BodySource {
        // Interim responses, upgrades and a 205 have no body: a client of
        // HTTP/1.1 would take DATA frames for the next response.
        let mayHaveContent = ResponseHead.mayHaveContent(status: response.head.status, answering: method)
        if let stream, mayHaveContent, !response.head.isUpgrade { return stream }
        return nothing
    }

    // MARK: End

    func end(_ ending: UpstreamEnding) -> HTTP1Upstream? {
        receiver = nil
        waiting = nil
        if case .switched = ending, let stream, let switched = connection(over: stream) { return switched }
        var isWell = false
        if let stream {
            switch ending {
            case .finished(requestSent: true, _): isWell = more.isEmpty && upgrade == nil
            case .abandoned: if !stream.isClosed { upstream.waitedInVain(since: began) }
            case .finished, .switched, .unused: break
            }
            stream.leave(.cancel, delivering: false)
            used = self.stream.take()
        }
        if isLeased {
            isLeased = false
            upstream.giveBack(isWell ? self : nil)
        }
        return nil
    }

    /// The stream as an exclusive connection. Its end returns the lease.
    private func connection(over stream: HTTP2Stream) -> HTTP1Upstream? {
        let upstream = upstream
        let socket: HTTP2StreamSocket
        do throws(SystemError) {
            socket = try HTTP2StreamSocket(stream, loop: upstream.loop) { upstream.giveBack() }
        } catch {
            return nil
        }
        isLeased = false
        var made = Establishment(
            loop: upstream.loop, stream: socket.outside, origin: upstream.origin, address: upstream.address)
        made.verdict = upstream.verdict
        made.validUntil = upstream.validUntil
        made.metrics = upstream.metrics
        made.scope = upstream.scope
        made.answer = upstream.answer
        return HTTP1Upstream(made, received: ByteBuffer(slabs: connection.slabs))
    }
}

extension HTTP2UpstreamStream: HTTP2StreamDoor {
    func received(_ place: HTTP2HeadPlace, ends: Bool) {
        guard let receiver else { return }
        if isFresh {
            guard more.count < Self.mostHeads else { return stream?.refuse(.tooManyHeads) ?? () }
            var head = Head(ends: ends)
            head.progress = connection.session.readResponse(place, to: method, into: &head.head, bytes: &head.bytes)
            more.append(head)
        } else {
            response.progress = connection.session.readResponse(
                place, to: method, into: &response.head, bytes: &response.bytes)
            response.ends = ends
            isFresh = true
        }
        isHere = stream.map { $0.hasReceivedAll || connection.session.endsSoon($0.id) } ?? false
        receiver.responseBegan()
    }

    func streamIsReadable() { receiver?.upstreamIsReadable() }
    func streamIsWritable() { receiver?.upstreamIsWritable() }
}
