import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity
import PinproxySerialization
import PinproxyTransport
import Testing

@testable import PinproxySession

/// An exchange between doors that are neither sockets nor HTTP/1.1.
@Suite(.timeLimit(.minutes(5))) struct ExchangeTests {
    private let bench: Workbench
    private let session: LoopSession
    private let destination: Destination
    private let upstream = MemoryUpstream()

    init() throws {
        bench = try Workbench()
        session = LoopSession(loop: bench.loop, slabs: bench.slabs, pool: bench.pool, connector: bench.connector)
        let target = try bench.target(port: 9)
        destination = Destination(
            authority: try Authority.parse("a.test:443", defaultPort: 443).get(), target: target,
            origin: bench.pool.origin(for: target.key),
            terms: ExchangeTerms(timeouts: Timeouts(), limits: Limits()), via: nil)
    }

    private func asked(
        _ request: String, by rules: ExchangeRules? = nil, takesInterim: Bool = false
    ) throws -> MemoryDownstream {
        let downstream = try MemoryDownstream(request, takesInterim: takesInterim, session: session)
        if !request.contains("Content-Length") { downstream.body.isEnded = true }
        downstream.begin(to: destination, by: rules, over: upstream)
        return downstream
    }

    @Test func aResponsePasses() throws {
        let downstream = try asked("GET / HTTP/1.1")
        #expect(upstream.heads == ["GET"] && upstream.sink.isEnded)
        let body = PieceSource()
        try upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 6", body)
        body.put(Array("abc".utf8))
        upstream.continues()
        #expect(downstream.response == "200 abc" && downstream.ending == nil)
        body.put(Array("def".utf8))
        body.isEnded = true
        upstream.continues()
        #expect(downstream.response == "200 abcdef" && downstream.sink.isEnded)
        guard case .finished(keeping: nil)? = downstream.ending, case .finished(requestSent: true, _)? = upstream.ending
        else {
            Issue.record("\(String(describing: downstream.ending))")
            return
        }
        #expect(downstream.endings == 1)
    }

    /// The head is kept meanwhile, and nothing is read.
    @Test func aGuideMayDecideLater() throws {
        var rules = SessionRules()
        rules.redirects = .follow
        rules.followTo = .anywhere
        let redirect = "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 5"
        func undecided() throws -> MemoryDownstream {
            let downstream = try asked("GET / HTTP/1.1", by: ExchangeRules(session: rules))
            downstream.isDeciding = true
            try upstream.answer(redirect, .whole("moved"))
            #expect(downstream.heads.isEmpty && !upstream.isRead && downstream.shown == [302])
            return downstream
        }
        let downstream = try undecided()
        let looks = upstream.looks
        upstream.continues()
        downstream.exchange.suspend("a test")
        downstream.exchange.resume("a test")
        upstream.continues()
        #expect(upstream.looks == looks && !upstream.isRead && downstream.heads.isEmpty)
        // It may need yet another decision.
        downstream.exchange.decided()
        #expect(downstream.heads.isEmpty)
        downstream.isDeciding = false
        downstream.exchange.decided()
        #expect(downstream.response == "302 moved" && downstream.endings == 1 && downstream.shown == [302])
        downstream.exchange.decided()
        #expect(downstream.response == "302 moved" && downstream.endings == 1)

        let cancelled = try undecided()
        cancelled.exchange.cancel("a test")
        cancelled.isDeciding = false
        cancelled.exchange.decided()
        #expect(cancelled.heads.isEmpty && cancelled.endings == 1)
    }

    /// Each side is read as fast as the other takes the bytes.
    @Test func aSlowSideHoldsTheOtherBack() throws {
        upstream.sink.room = 2
        let downstream = try asked("PUT / HTTP/1.1\r\nContent-Length: 5")
        downstream.body.put(Array("12345".utf8))
        downstream.body.isEnded = true
        #expect(downstream.exchange.downstreamIsReadable())
        #expect(upstream.sink.bytes == Array("12".utf8))
        upstream.sink.room = .max
        upstream.continues()
        #expect(upstream.sink.bytes == Array("12345".utf8) && upstream.sink.isEnded)
        downstream.sink.room = 1
        try upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 3", .whole("abc"))
        #expect(downstream.response == "200 a")
        downstream.sink.room = .max
        downstream.exchange.downstreamIsWritable()
        #expect(downstream.response == "200 abc" && downstream.endings == 1)
    }

    /// HTTP/1.1 clients take interim responses; the proxy's own requests don't.
    @Test(arguments: [true, false]) func interimResponsesPassToClientsThatTakeThem(takesInterim: Bool) throws {
        let downstream = try asked("GET / HTTP/1.1", takesInterim: takesInterim)
        try upstream.answer("HTTP/1.1 103 Early Hints")
        try upstream.answer("HTTP/1.1 102 Processing")
        try upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 0", .none)
        #expect(downstream.heads == (takesInterim ? ["103 ", "102 ", "200 "] : ["200 "]) && downstream.endings == 1)
    }

    /// An origin that sends heads endlessly is read once per turn.
    @Test func oneTurnReadsOnce() throws {
        let downstream = try asked("GET / HTTP/1.1")
        for _ in 0..<9 { try upstream.answer("HTTP/1.1 103 Early Hints", isTold: false) }
        upstream.continues()
        #expect(upstream.reads == 1 && upstream.looks == 10 && downstream.ending == nil)
    }

    @Test(arguments: [false, true]) func anUpstreamThatEndsIsToldOrSeen(hasBegun: Bool) throws {
        let downstream = try asked("POST / HTTP/1.1\r\nContent-Length: 0")
        if hasBegun {
            let body = PieceSource(Array("ab".utf8))
            try upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 9", body)
            downstream.exchange.cancel("the test")
            guard case .cut(.delivered, _)? = downstream.ending else {
                throw Unexpected(text: "\(String(describing: downstream.ending))")
            }
        } else {
            upstream.fails(.ended("closed the connection"))
            guard case .refused(.upstreamClosed, _)? = downstream.ending else {
                throw Unexpected(text: "\(String(describing: downstream.ending))")
            }
        }
        guard case .abandoned? = upstream.ending else { throw Unexpected(text: "kept") }
        #expect(downstream.endings == 1)
    }

    /// What a client hasn't taken can't be delivered.
    @Test func aClientThatTakesNothingIsReset() throws {
        let downstream = try asked("GET / HTTP/1.1")
        downstream.sink.room = 1
        try upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 9", .whole("abc"))
        downstream.exchange.cancel("the test")
        guard case .cut(.reset, _)? = downstream.ending else {
            throw Unexpected(text: "\(String(describing: downstream.ending))")
        }
    }

    /// Nothing moves while it is suspended, whichever side has something, and everything afterwards.
    @Test func aSuspensionStopsBothSides() throws {
        let downstream = try asked("GET / HTTP/1.1")
        downstream.exchange.suspend("the test")
        try upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 3", .whole("abc"))
        upstream.continues()
        #expect(downstream.response == "" && downstream.ending == nil && !downstream.isRead)
        downstream.exchange.resume("the test")
        #expect(downstream.response == "200 abc" && downstream.endings == 1)
    }

    /// A rule that refuses a body sees it before the client does; an interrupted body is never judged.
    @Test(arguments: [("[1]", "200 [1]"), ("[1", "")]) func aBodyIsJudgedBeforeItPasses(
        body: String, arrived: String
    ) throws {
        var response = ResponseRules()
        response.serializers = [.json]
        let downstream = try asked(
            "GET / HTTP/1.1", by: ExchangeRules(response: response, sources: ["response.serializer": "test"]))
        try upstream.answer(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)", .whole(body))
        for _ in 0..<1000 where downstream.ending == nil { bench.runOnce() }
        #expect(downstream.response == arrived && downstream.endings == 1)
        if arrived.isEmpty {
            guard case .refused(.unacceptable, _)? = downstream.ending else {
                throw Unexpected(text: "\(String(describing: downstream.ending))")
            }
        }
    }
}
