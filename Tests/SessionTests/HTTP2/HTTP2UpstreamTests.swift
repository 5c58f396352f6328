import PinproxyEventLoop
import PinproxyHTTP2
import PinproxyHTTPWire
import PinproxyTransport
import Testing

@testable import PinproxySession

/// Exchanges that share connections to an origin of HTTP/2.
@Suite(.timeLimit(.minutes(5))) struct HTTP2UpstreamTests {
    private let bed: HTTP2Bench

    init() throws { bed = try HTTP2Bench() }

    @Test func aResponsePasses() throws {
        let (_, origin) = try bed.connect()
        let client = try bed.ask("GET /a?b HTTP/1.1\r\nX-A: b\r\nConnection: close")
        try bed.run { origin.requests.count == 1 }
        #expect(origin.requests[0].text == "GET /a?b HTTP/1.1\r\nHost: a.test\r\nx-a: b\r\n\r\n")
        origin.requests[0].answer("200", [("content-length", "5")], body: PieceSource.whole("hello"))
        try bed.run { client.ending != nil }
        #expect(client.response == "200 hello" && client.sink.isEnded)
        guard case .finished(keeping: nil)? = client.ending else {
            throw Unexpected(text: "\(String(describing: client.ending))")
        }
    }

    /// The objects of an exchange serve the next, with nothing left of the one before.
    @Test func exchangesFollowOneAnother() throws {
        let (upstream, origin) = try bed.connect()
        var streams: Set<ObjectIdentifier> = []
        for number in 0..<20 {
            let client = try bed.ask("GET /\(number) HTTP/1.1")
            try bed.run { origin.requests.count == number + 1 }
            let asked = origin.requests[number]
            switch number % 4 {
            case 0: asked.answer("200", [("content-length", "5")], body: PieceSource.whole("hello"))
            case 1: asked.answer("204")
            case 2: asked.reset(.internalError)
            default: asked.answer("200", body: PieceSource.whole(String(repeating: "x", count: 100_000)))
            }
            try bed.run { client.ending != nil }
            switch number % 4 {
            case 0: #expect(client.response == "200 hello")
            case 1: #expect(client.response == "204 ")
            case 2: #expect(client.response.isEmpty)
            default: #expect(client.response == "200 " + String(repeating: "x", count: 100_000))
            }
            streams.insert(ObjectIdentifier(asked.stream))
        }
        #expect(upstream.streamCount == 0 && upstream.exchanges == 20)
        #expect(streams.count == 20, "the origin of the test keeps its own")
    }

    @Test func anObjectInUseElsewhereIsNotUsedAgain() throws {
        let (upstream, _) = try bed.connect()
        var stream: HTTP2Stream? = upstream.connection.adopt(HTTP2StreamID(101))
        stream?.broke(.connection("test"))
        let held = stream
        upstream.connection.adopt(HTTP2StreamID(103), in: &stream)
        #expect(stream !== held && held?.id == HTTP2StreamID(101))
        stream?.broke(.connection("test"))
        let before = stream.map { ObjectIdentifier($0) }
        upstream.connection.adopt(HTTP2StreamID(105), in: &stream)
        #expect(stream.map { ObjectIdentifier($0) } == before)
        #expect(stream?.id == HTTP2StreamID(105) && stream?.failure == nil && upstream.streamCount == 1)
        // An open stream keeps its object.
        let open = stream
        stream = nil
        var another = open
        upstream.connection.adopt(HTTP2StreamID(107), in: &another)
        #expect(another !== open && upstream.streamCount == 2)
        open?.broke(.connection("test"))
        another?.broke(.connection("test"))
    }

    @Test func aBodyGoesUpWithItsTrailersLeftOut() throws {
        let (_, origin) = try bed.connect()
        let body = PieceSource(Array("abc".utf8))
        let client = try bed.ask("POST / HTTP/1.1\r\nTransfer-Encoding: chunked", body: body)
        try bed.run { origin.requests.count == 1 }
        body.put(Array("def".utf8))
        body.isEnded = true
        #expect(client.exchange.downstreamIsReadable())
        try bed.run { origin.requests[0].hasAll }
        #expect(origin.requests[0].sink.bytes == Array("abcdef".utf8))
        origin.requests[0].answer("204")
        try bed.run { client.ending != nil }
        #expect(client.response == "204 ")
    }

    @Test func exchangesShareAConnectionUpToThePeersLimit() throws {
        var settings = HTTP2Settings()
        settings.maxConcurrentStreams = 3
        let (upstream, origin) = try bed.connect(settings)
        let clients = try (0..<3).map { _ in try bed.ask() }
        #expect(bed.origin.lease(for: .get, at: 0) == nil, "the peer allows three")
        try bed.run { origin.requests.count == 3 }
        for request in origin.requests { request.answer("204") }
        try bed.run { clients.allSatisfy { $0.ending != nil } }
        #expect(upstream.exchanges == 3 && bed.bench.pool.idleCount == 1)
        #expect(bed.origin.connectionAtHand(at: 0) === upstream)
    }

    /// RFC 9113 section 8.7: the request wasn't processed, whatever its method.
    @Test func aRefusedRequestIsSentAgain() throws {
        let (_, calm) = try bed.connect()
        let (_, full) = try bed.connect()
        let client = try bed.ask("POST / HTTP/1.1\r\nContent-Length: 3", body: .whole("abc"))
        try bed.run { full.requests.count == 1 && full.requests[0].hasAll }
        full.requests[0].reset(.refusedStream)
        try bed.run { calm.requests.count == 1 && calm.requests[0].hasAll }
        #expect(calm.requests[0].sink.bytes == Array("abc".utf8))
        calm.requests[0].answer("200")
        try bed.run { client.ending != nil }
        #expect(client.response == "200 ")
    }

    /// After two refusals the request gets an unused connection; here none can be made.
    @Test func aRequestThatIsRefusedAgainHasAConnectionOfItsOwn() throws {
        for _ in 0..<3 { try bed.connect() }
        let client = try bed.ask("POST / HTTP/1.1\r\nContent-Length: 0")
        for number in 1...3 {
            try bed.run { bed.origins.map(\.requests.count).reduce(0, +) == number }
            try #require(bed.origins.last { $0.requests.count == 1 && !$0.hasRefused }).refuseAll()
        }
        try bed.run { client.ending != nil }
        guard case .refused(.unreachable, _)? = client.ending else {
            throw Unexpected(text: "\(String(describing: client.ending))")
        }
        #expect(bed.origins.allSatisfy { $0.requests.count == 1 })
    }

    /// The peer leaves in the round that the request began: nothing of it was sent, so it may be sent again.
    @Test func aRequestThatStillWaitsIsSentAgain() throws {
        let (_, fresh) = try bed.connect()
        let (leaving, old) = try bed.connect()
        old.connection.stream.endWriting()
        let client = try bed.ask("POST / HTTP/1.1\r\nContent-Length: 1", body: .whole("x"))
        leaving.connection.streamIsReadable(leaving.connection.stream)
        #expect(leaving.isOver)
        try bed.run { fresh.requests.count == 1 && fresh.requests[0].hasAll }
        fresh.requests[0].answer("200")
        try bed.run { client.ending != nil }
        #expect(client.response == "200 " && old.requests.isEmpty)
    }

    @Test func aConnectionThatLeavesServesWhatItTook() throws {
        let (leaving, old) = try bed.connect()
        let first = try bed.ask("GET /first HTTP/1.1")
        try bed.run { old.requests.count == 1 }
        let (_, fresh) = try bed.connect()
        old.connection.session.goAway(.noError)
        old.connection.pumpLater()
        try bed.run { !leaving.takesExchanges }
        let second = try bed.ask("GET /second HTTP/1.1")
        try bed.run { fresh.requests.count == 1 }
        old.requests[0].answer("200")
        fresh.requests[0].answer("201")
        try bed.run { first.ending != nil && second.ending != nil }
        #expect(first.response == "200 " && second.response == "201 ")
        try bed.run("it closes after its last exchange") { leaving.isOver }
        #expect(bed.origin.shared.count == 1)
    }

    @Test func whatTheLastGoAwayLeavesOutIsSentAgain() throws {
        let (_, fresh) = try bed.connect()
        let (leaving, old) = try bed.connect()
        // It leaves before it has read the request.
        old.connection.session.goAway(.noError)
        let client = try bed.ask("POST / HTTP/1.1\r\nContent-Length: 1", body: .whole("x"))
        old.connection.pumpLater()
        try bed.run { fresh.requests.count == 1 }
        fresh.requests[0].answer("200")
        try bed.run { client.ending != nil }
        #expect(client.response == "200 " && old.requests.isEmpty)
        try bed.run { leaving.isOver }
    }

    @Test func aSlowReaderHoldsUpNobodyElse() throws {
        let (_, origin) = try bed.connect()
        let (slow, quick) = (try bed.ask("GET /slow HTTP/1.1"), try bed.ask("GET /quick HTTP/1.1"))
        slow.sink.room = 10
        try bed.run { origin.requests.count == 2 }
        let body = [UInt8](repeating: 7, count: 3 << 20)
        for request in origin.requests {
            let source = PieceSource(body)
            source.isEnded = true
            request.answer("200", body: source)
        }
        try bed.run { quick.ending != nil }
        #expect(quick.sink.bytes == body && slow.sink.bytes.count == 10 && slow.ending == nil)
        #expect(bed.session.slabs.budget.inUse > 0, "what waits is counted")
        #expect(bed.session.slabs.budget.inUse <= HTTP2Limits().streamWindow)
        slow.sink.room = .max
        slow.exchange.downstreamIsWritable()
        try bed.run { slow.ending != nil }
        #expect(slow.sink.bytes == body && bed.session.slabs.budget.inUse == 0)
    }

    @Test func whatTheBudgetDoesNotHoldIsRefused() throws {
        let bed = try HTTP2Bench(budget: BodyBudget(limit: 32 << 10))
        let (_, origin) = try bed.connect()
        let client = try bed.ask()
        client.sink.room = 0
        try bed.run { origin.requests.count == 1 }
        let source = PieceSource([UInt8](repeating: 7, count: 1 << 20))
        origin.requests[0].answer("200", body: source)
        try bed.run { client.ending != nil }
        guard case .cut? = client.ending else { throw Unexpected(text: "\(String(describing: client.ending))") }
        #expect(client.exchange.record.failure?.contains("limits.bodies") == true)
        #expect(bed.session.slabs.budget.inUse == 0)
    }

    /// A response that ends before its request resets the stream alone.
    @Test func anEarlyResponseEndsItsRequest() throws {
        let (upstream, origin) = try bed.connect()
        let client = try bed.ask("POST / HTTP/1.1\r\nContent-Length: 100", body: PieceSource(Array("abc".utf8)))
        try bed.run { origin.requests.count == 1 }
        origin.requests[0].answer("413")
        try bed.run { client.ending != nil && upstream.connection.streamCount == 0 }
        #expect(client.response == "413 " && upstream.takesExchanges)
        let next = try bed.ask()
        try bed.run { origin.requests.count == 2 }
        origin.requests[1].answer("204")
        try bed.run { next.ending != nil }
    }

    @Test func anEndOfTheConnectionEndsItsExchanges() throws {
        let (upstream, origin) = try bed.connect()
        let (asked, answered) = (try bed.ask("POST / HTTP/1.1\r\nContent-Length: 0"), try bed.ask())
        try bed.run { origin.requests.count == 2 }
        origin.requests[1].answer("200", body: PieceSource(Array("abc".utf8)))
        try bed.run { answered.sink.bytes.count == 3 }
        origin.connection.stream.endWriting()
        try bed.run { asked.ending != nil && answered.ending != nil }
        guard case .refused? = asked.ending, case .cut? = answered.ending else {
            throw Unexpected(text: "\(String(describing: asked.ending)), \(String(describing: answered.ending))")
        }
        #expect(upstream.isOver && bed.origin.shared.isEmpty && bed.bench.pool.idleCount == 0)
    }

    /// An exchange with a complete response outlives the connection, and doesn't retain it.
    @Test func aConnectionThatEndsBeforeItsLastExchangeIsReleased() throws {
        weak var connection: HTTP2Upstream?
        do {
            let (upstream, origin) = try bed.connect()
            connection = upstream
            let client = try bed.ask()
            client.sink.room = 1
            try bed.run { origin.requests.count == 1 }
            origin.requests[0].answer("200", body: PieceSource.whole("abc"))
            try bed.run { client.sink.bytes.count == 1 }
            origin.connection.stream.endWriting()
            try bed.run { upstream.isOver }
            client.sink.room = .max
            client.exchange.downstreamIsWritable()
            try bed.run { client.ending != nil }
            #expect(client.response == "200 abc")
        }
        try bed.run("it is released") { connection == nil }
    }

    @Test func aStreamThatWasNotUsedIsReturned() throws {
        var settings = HTTP2Settings()
        settings.maxConcurrentStreams = 1
        let (upstream, _) = try bed.connect(settings)
        let leased = try #require(bed.origin.lease(for: .get, at: 0))
        #expect(bed.bench.pool.idleCount == 0 && !upstream.takesExchanges)
        _ = leased.end(.unused(idleNanoseconds: 1))
        #expect(bed.bench.pool.idleCount == 1 && upstream.takesExchanges)
    }

    @Test func aRetiredConnectionClosesAfterItsLastExchange() throws {
        let (upstream, origin) = try bed.connect()
        let client = try bed.ask()
        try bed.run { origin.requests.count == 1 }
        bed.bench.pool.retire { _ in true }
        #expect(!upstream.isOver && bed.origin.connectionAtHand(at: 0) == nil)
        origin.requests[0].answer("200")
        try bed.run { client.ending != nil }
        #expect(client.response == "200 " && upstream.isOver)
        try bed.run { origin.ending != nil }
    }

    @Test func anIdleOneIsGivenUpWhereDescriptorsLack() throws {
        let (upstream, origin) = try bed.connect()
        #expect(bed.bench.pool.giveUp() == 1)
        #expect(upstream.isOver && bed.origin.shared.isEmpty)
        try bed.run { origin.ending != nil }
    }

    /// Each answer violates the protocol: it isn't forwarded, and the request isn't sent again.
    @Test(
        arguments: [
            [("content-length", "5"), ("content-length", "6")], [("connection", "close")],
            [("transfer-encoding", "chunked")],
            [("content-length", "five")],
        ] as [[(StaticString, String)]])
    func aMalformedResponseIsRefused(fields: [(StaticString, String)]) throws {
        let (_, origin) = try bed.connect()
        _ = try bed.connect()
        let client = try bed.ask()
        try bed.run { bed.origins.contains { $0.requests.count == 1 } }
        let asked = try #require(bed.origins.first { $0.requests.count == 1 })
        _ = origin
        asked.requests[0].answer("200", fields, body: PieceSource.whole("hello"))
        try bed.run { client.ending != nil }
        guard case .refused? = client.ending else {
            throw Unexpected(text: "\(String(describing: client.ending)) \(client.response)")
        }
        #expect(bed.origins.map(\.requests.count).reduce(0, +) == 1)
    }
}
