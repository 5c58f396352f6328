import PinproxyHTTP2
import PinproxyHTTPWire
import PinproxySecurity
import PinproxyTLS
import PinproxyTransport
import Testing

@testable import PinproxyEventLoop
@testable import PinproxySession

/// An HTTP/2 origin in this process, with connections over socket pairs, and exchanges with it.
final class HTTP2Bench {
    let bench: Workbench
    let session: LoopSession
    let destination: Destination
    private(set) var origins: [HTTP2Origin] = []

    init(budget: BodyBudget = BodyBudget()) throws {
        bench = try Workbench()
        let slabs = SlabPool(budget: budget)
        session = LoopSession(loop: bench.loop, slabs: slabs, pool: bench.pool, connector: bench.connector)
        let target = try bench.target(port: 9)
        destination = Destination(
            authority: try Authority.parse("a.test:443", defaultPort: 443).get(), target: target,
            origin: bench.pool.origin(for: target.key),
            terms: ExchangeTerms(timeouts: Timeouts(), limits: Limits()), via: nil)
    }

    deinit { bench.pool.close() }

    var origin: Origin { destination.origin }

    /// One more connection, which exchanges share.
    @discardableResult
    func connect(_ settings: HTTP2Settings = HTTP2Settings()) throws -> (HTTP2Upstream, HTTP2Origin) {
        let (near, far) = try Socket.pair()
        let served = try HTTP2Origin(
            over: ByteStream(loop: bench.loop, descriptor: Descriptor(owning: far)), settings, loop: bench.loop)
        let address = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 443)
        let upstream = try HTTP2Upstream(
            Establishment(
                loop: bench.loop, stream: ByteStream(loop: bench.loop, descriptor: Descriptor(owning: near)),
                origin: origin,
                address: address),
            slabs: session.slabs, timeouts: Timeouts())
        origins.append(served)
        try run {
            served.knowsSettings && upstream.connection.session.maxConcurrentStreams == settings.maxConcurrentStreams
        }
        return (upstream, served)
    }

    /// An exchange over a connection leased from the origin.
    func ask(_ request: String = "GET / HTTP/1.1", body: PieceSource? = nil) throws -> MemoryDownstream {
        let downstream = try MemoryDownstream(request, session: session)
        if let body { downstream.requestBody = body } else { downstream.body.isEnded = true }
        let upstream = try #require(origin.lease(for: .get, at: 0), "nothing is at hand")
        downstream.begin(to: destination, over: upstream)
        return downstream
    }

    /// Runs the loop until a condition holds, and fails if it never does.
    func run(_ what: Comment = "the loop waits for nothing", until holds: () -> Bool) throws {
        for _ in 0..<20_000 where !holds() { bench.loop.runReady() }
        try #require(holds(), what)
    }
}

/// The origin's end of a connection: the test decides what it answers.
final class HTTP2Origin: HTTP2ConnectionOwner {
    let connection: HTTP2Connection
    private(set) var requests: [HTTP2Asked] = []
    private(set) var knowsSettings = false
    private(set) var ending: String?
    private(set) var hasRefused = false

    func refuseAll() {
        hasRefused = true
        for request in requests { request.reset(.refusedStream) }
    }

    init(over stream: ByteStream, _ settings: HTTP2Settings, loop: EventLoop) throws {
        connection = try HTTP2Connection(
            .server, over: stream, settings: settings, loop: loop, slabs: SlabPool(), idleNanoseconds: 60_000_000_000)
        connection.start(for: self)
    }

    func received(_ place: HTTP2HeadPlace, on id: HTTP2StreamID, ends: Bool) {
        let asked = HTTP2Asked(id, of: connection)
        var head = RequestHead()
        var bytes: [UInt8] = []
        _ = connection.session.readRequest(place, into: &head, bytes: &bytes)
        asked.text = String(decoding: bytes, as: UTF8.self)
        if ends { asked.stream.ended(TrailerSection()) }
        requests.append(asked)
    }

    func connectionChanged(_ connection: HTTP2Connection) { knowsSettings = true }
    func answeredPing(_ opaque: UInt64) {}
    func connectionIsQuiet() {}
    func received(_ defect: HTTP2Defect, on id: HTTP2StreamID) {}
    func connectionEnded(_ connection: HTTP2Connection, _ cause: String) { ending = cause }
}

/// A request as the origin got it.
final class HTTP2Asked: HTTP2StreamDoor {
    private(set) var stream: HTTP2Stream!
    var text = ""
    let sink = BoundedSink()
    private(set) var hasAll = false
    private let connection: HTTP2Connection

    init(_ id: HTTP2StreamID, of connection: HTTP2Connection) {
        self.connection = connection
        stream = connection.adopt(id, for: self)
    }

    /// - Parameter body: nil: the head ends the stream.
    func answer(_ status: String = "200", _ fields: [(StaticString, String)] = [], body: (any BodySource)? = nil) {
        connection.block.clear()
        connection.block.append(":status", status)
        for (name, value) in fields { connection.block.append(name, value) }
        connection.session.submitResponse(stream.id, connection.block, hasBody: body != nil)
        stream.begin(hasBody: body != nil, bytes: 0)
        source = body
        streamIsWritable()
    }

    private var source: (any BodySource)?

    func reset(_ code: HTTP2ErrorCode) {
        connection.session.reset(stream.id, code)
        connection.pumpLater()
    }

    func received(_ place: HTTP2HeadPlace, ends: Bool) {}
    func streamIsReadable() { if case .ended = stream.move(to: sink, readable: true) { hasAll = true } }
    func streamIsWritable() { _ = source?.move(to: stream, readable: false) }
}
