import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTLS
import Testing

@testable import PinproxySession

/// Exchanges with a cache between doors in memory: what happens in the middle.
@Suite(.timeLimit(.minutes(5))) struct CachedExchangeTests {
    private let bench: Workbench
    private let session: LoopSession
    private let destination: Destination
    private let rules: ExchangeRules

    init() throws {
        bench = try Workbench()
        session = LoopSession(loop: bench.loop, slabs: bench.slabs, pool: bench.pool, connector: bench.connector)
        let target = try bench.target(port: 9)
        destination = Destination(
            authority: try Authority.parse("a.test:443", defaultPort: 443).get(), target: target,
            origin: bench.pool.origin(for: target.key),
            terms: ExchangeTerms(timeouts: Timeouts(), limits: Limits()), via: nil)
        var cache = CacheRules()
        (cache.store, cache.isShared) = (.memory, true)
        rules = ExchangeRules(cache: CacheTerms(cache, identity: SHA256Digest.of([])))
    }

    private func ask(_ request: String, over upstream: MemoryUpstream, room: Int = .max) throws -> MemoryDownstream {
        let downstream = try MemoryDownstream(request, session: session)
        if room != .max { downstream.sink.room = room }
        downstream.body.isEnded = true
        downstream.begin(to: destination, by: rules, over: upstream)
        return downstream
    }

    /// Stores "abc" under the path.
    private func store(_ path: String, _ cacheControl: String, fields: String = "") throws {
        let upstream = MemoryUpstream()
        let downstream = try ask("GET \(path) HTTP/1.1", over: upstream)
        try upstream.answer(
            "HTTP/1.1 200 OK\r\nCache-Control: \(cacheControl)\r\n\(fields)Content-Length: 3", .whole("abc"))
        #expect(downstream.response == "200 abc")
        #expect(session.cache.memory.figures.responses == 1)
    }

    /// Whether the origin is asked.
    private func isAsked(_ path: String) throws -> Bool {
        let upstream = MemoryUpstream()
        let downstream = try ask("GET \(path) HTTP/1.1", over: upstream)
        defer { downstream.exchange.cancel("the test has ended") }
        return upstream.heads == ["GET"]
    }

    /// The rest of the origin's response is not read: a readable socket that isn't read would keep the loop busy.
    @Test(arguments: ["503 Busy", "304 Not Modified"]) func anOriginInWhosePlaceIsServedIsNotRead(status: String) throws
    {
        try store("/a", "max-age=1, stale-if-error=600", fields: "Age: 100\r\nETag: \"x\"\r\n")
        let upstream = MemoryUpstream()
        let downstream = try ask("GET /a HTTP/1.1", over: upstream, room: 1)
        #expect(upstream.isRead)
        let hasBody = status.hasPrefix("503")
        try upstream.answer("HTTP/1.1 \(status)\r\nContent-Length: 5", hasBody ? PieceSource() : .none)
        #expect(downstream.response == "200 a" && !upstream.isRead)
        // Nor when the client stays slow.
        downstream.exchange.suspend("test")
        downstream.exchange.resume("test")
        #expect(!upstream.isRead)
        downstream.sink.room = 100
        downstream.exchange.downstreamIsWritable()
        #expect(downstream.response == "200 abc" && downstream.endings == 1)
        if hasBody {
            guard case .abandoned? = upstream.ending else { Issue.record("its body was left unread"); return }
        }
    }

    /// A POST arrives during the GET's body: the rest of that body may predate it (RFC 9111 section 4.4).
    @Test func whatArrivesDuringAnUnsafeRequestIsNotStored() throws {
        let (slow, unsafe) = (MemoryUpstream(), MemoryUpstream())
        let body = PieceSource()
        let reader = try ask("GET /a HTTP/1.1", over: slow)
        try slow.answer("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 3", body)
        let poster = try ask("POST /a HTTP/1.1", over: unsafe)
        try unsafe.answer("HTTP/1.1 200 OK\r\nContent-Length: 0", .none)
        #expect(poster.response == "200 ")
        body.put(Array("abc".utf8))
        body.isEnded = true
        slow.continues()
        #expect(reader.response == "200 abc" && reader.endings == 1)
        #expect(session.cache.memory.figures.responses == 0)
        #expect(try isAsked("/a"))
    }

    /// The same for a 304 that arrives after the stored response was removed.
    @Test func whatWasRemovedIsNotConfirmed() throws {
        try store("/a", "max-age=1", fields: "Age: 100\r\nETag: \"x\"\r\n")
        let upstream = MemoryUpstream()
        let downstream = try ask("GET /a HTTP/1.1", over: upstream)
        #expect(session.cache.memory.removeAll { _ in true } == 1)
        try upstream.answer("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nCache-Control: max-age=600", .none)
        #expect(downstream.response == "200 abc")
        #expect(session.cache.memory.figures.responses == 0)
    }

    /// Slow clients hold responses even after eviction: their size and the store's are both limited.
    @Test func slowClientsHoldNoMoreThanTheStoreTwice() throws {
        let cache = ResponseCache(
            {
                var sizes = CacheSizes(); sizes.memory = 8000; return sizes
            }())
        var held: [StoredBytes] = []
        while cache.memory.account.bytes <= 2 * cache.memory.limit {
            held.append(StoredBytes([UInt8](repeating: 0, count: 1000), in: cache.memory.account))
        }
        #expect(held.count == 17)
        held.removeAll()
        #expect(cache.memory.account.bytes == 0)
    }
}
