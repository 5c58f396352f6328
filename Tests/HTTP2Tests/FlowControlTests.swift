import PinproxyHTTP2
import PinproxyHTTPWire
import Testing

/// Windows, and outlets without space (RFC 9113 section 5.2).
@Suite struct FlowControlTests {
    private func opened(
        _ client: HTTP2Settings = HTTP2Settings(), _ server: HTTP2Settings = HTTP2Settings()
    ) throws
        -> (Pair, HTTP2StreamID)
    {
        let pair = try Pair(client: client, server: server)
        let stream = try #require(pair.client.session.submitRequest(request(), hasBody: false))
        pair.exchange()
        pair.server.session.submitResponse(stream, response(), hasBody: true)
        pair.client.received = []
        pair.server.received = []
        return (pair, stream)
    }

    private func dataCount(_ peer: Peer) -> Int {
        peer.received.reduce(0) { if case .data(_, let bytes) = $1 { $0 + bytes.count } else { $0 } }
    }

    @Test func aSlowReaderHoldsUpItsOwnStream() throws {
        var settings = HTTP2Settings()
        settings.initialWindow = 20_000
        let (pair, slow) = try opened(settings)
        pair.client.consumes = false
        pair.server.say(slow, String(repeating: "x", count: 50_000))
        pair.exchange()
        #expect(dataCount(pair.client) == 20_000)
        #expect(pair.server.session.remoteWindow(of: slow) == 0)
        #expect(pair.server.session.remoteWindow > 100_000)

        let other = try #require(pair.client.session.submitRequest(request(), hasBody: false))
        pair.exchange()
        pair.server.session.submitResponse(other, response(), hasBody: true)
        pair.server.say(other, "quick")
        pair.exchange()
        #expect(pair.client.received.suffix(2) == [.data(3, Array("quick".utf8)), .ended(3)])

        pair.client.session.consumed(20_000, of: slow)
        pair.client.session.consumedOfConnection(20_000)
        pair.exchange()
        #expect(pair.server.received.contains(.windowOpened(1)))
        #expect(dataCount(pair.client) == 40_005)
        pair.client.session.consumed(20_000, of: slow)
        pair.exchange()
        #expect(pair.client.received.last == .ended(1))
        #expect(dataCount(pair.client) == 50_005)
    }

    @Test func theConnectionsWindowHoldsUpAllStreams() throws {
        var settings = HTTP2Settings()
        settings.connectionWindow = 0
        let (pair, stream) = try opened(settings)
        pair.client.consumes = false
        pair.server.say(stream, String(repeating: "x", count: 100_000))
        pair.exchange()
        #expect(dataCount(pair.client) == 65_535)
        #expect(pair.server.session.remoteWindow == 0)
        #expect(pair.server.session.remoteWindow(of: stream) == 0)
        #expect(!pair.server.session.wantsToSend)
        pair.client.session.consumedOfConnection(65_535)
        pair.exchange()
        #expect(pair.server.received.contains(.windowOpened(nil)))
        #expect(dataCount(pair.client) == 100_000)
    }

    /// A stream's window grows with the first consumed bytes.
    @Test func windowsGrowAlsoOfStreamsThatAreOpen() throws {
        var settings = HTTP2Settings()
        settings.initialWindow = 1000
        settings.connectionWindow = 0
        let (pair, stream) = try opened(settings)
        pair.client.consumes = false
        pair.server.say(stream, String(repeating: "x", count: 200_000))
        pair.exchange()
        #expect(dataCount(pair.client) == 1000)
        pair.client.session.growStreamWindow(to: 100_000)
        pair.exchange()
        #expect(dataCount(pair.client) == 1000)
        pair.client.session.consumed(1, of: stream)
        pair.exchange()
        #expect(pair.server.received.contains(.windowOpened(1)))
        #expect(dataCount(pair.client) == 65_535)
        pair.client.session.growConnectionWindow(to: 150_000)
        pair.client.session.growConnectionWindow(to: 10)
        pair.exchange()
        #expect((100_000...100_001).contains(dataCount(pair.client)))
        #expect(pair.client.session.connectionWindow == 150_000)
    }

    /// Twenty readers that read a little and stop: what may have to be held for them is limited.
    @Test func windowsOfManyStreamsGrowByNoMoreThanTheConnectionsLargest() throws {
        var settings = HTTP2Settings()
        settings.initialWindow = 1000
        settings.connectionWindow = 64 << 20
        let limits = HTTP2Limits()
        let pair = try Pair(client: settings)
        pair.client.consumes = false
        pair.client.session.growStreamWindow(to: .max)
        var streams: [HTTP2StreamID] = []
        for _ in 0..<20 { streams.append(try #require(pair.client.session.submitRequest(request(), hasBody: false))) }
        pair.exchange()
        for stream in streams {
            pair.server.session.submitResponse(stream, response(), hasBody: true)
            pair.server.say(stream, String(repeating: "x", count: 1000), isLast: false)
        }
        pair.exchange()
        for stream in streams { pair.client.session.consumed(1000, of: stream) }
        pair.exchange()
        let windows = streams.map { pair.server.session.remoteWindow(of: $0) }
        let most = 20 * 1000 + limits.connectionWindow
        #expect((most - 20 * 1000...most).contains(windows.reduce(0, +)), "\(windows)")
        #expect(windows.allSatisfy { $0 <= limits.streamWindow }, "\(windows)")
        // The windows of closed streams are available to others.
        for stream in streams { pair.client.session.reset(stream, .cancel) }
        pair.exchange()
        let next = try #require(pair.client.session.submitRequest(request(), hasBody: false))
        pair.exchange()
        pair.server.session.submitResponse(next, response(), hasBody: true)
        pair.server.say(next, String(repeating: "x", count: 1000), isLast: false)
        pair.exchange()
        pair.client.session.consumed(1000, of: next)
        pair.exchange()
        #expect(pair.server.session.remoteWindow(of: next) > limits.streamWindow / 2)
    }

    @Test func anOutletWithoutRoomIsAskedAgain() throws {
        let (pair, stream) = try opened()
        pair.server.room = 40_000
        pair.server.say(stream, String(repeating: "x", count: 100_000))
        #expect(pair.server.session.wantsToSend)
        var pieces: [[UInt8]] = []
        while pieces.last?.isEmpty != true { pieces.append(pair.server.collect()) }
        #expect(pieces.count > 3)
        #expect(pieces.allSatisfy { $0.count <= 40_000 })
        for piece in pieces { pair.client.receive(piece) }
        #expect(pair.client.received.last == .ended(1))
        #expect(dataCount(pair.client) == 100_000)
        #expect(!pair.server.session.wantsToSend)
    }

    @Test func anOutletWithoutAnyRoomGetsNothing() throws {
        let (pair, stream) = try opened()
        pair.server.room = 0
        pair.server.say(stream, "x")
        #expect(pair.server.collect().isEmpty)
        #expect(pair.server.session.wantsToSend)
        pair.server.room = .max
        pair.exchange()
        #expect(pair.client.received.last == .ended(1))
    }

    @Test func aBodyComesPieceByPiece() throws {
        let (pair, stream) = try opened()
        pair.exchange()
        #expect(pair.client.ofStreams == [.head(1, "HTTP/1.1 200 \r\n\r\n", ends: false, body: .unknown)])
        for text in ["one", "two", "three"] {
            pair.server.say(stream, text, isLast: false)
            pair.exchange()
        }
        pair.server.say(stream, "")
        pair.exchange()
        #expect(pair.client.ofStreams.suffix(2) == [.data(1, Array("onetwothree".utf8)), .ended(1)])
    }

    @Test func moreThanTheWindowIsAnError() throws {
        var settings = HTTP2Settings()
        settings.initialWindow = 10
        let server = try Peer.server(settings: settings)
        server.receive(Raw.request(1, flags: Raw.endHeaders) + Raw.data(1, "12345678901"))
        #expect(server.received.last == .malformed(1, .frame(.flowControlError)))
        #expect(!server.session.isGoingAway)

        var narrow = HTTP2Settings()
        narrow.initialWindow = 1 << 20
        narrow.connectionWindow = 0
        let other = try Peer.server(settings: narrow)
        other.consumes = false
        other.receive(Raw.request(1, flags: Raw.endHeaders))
        for _ in 0..<4 { other.receive(Raw.data(1, String(repeating: "x", count: 16_384))) }
        #expect(other.received.last == .failed(.flowControlError))
    }

    @Test func aWindowThatOverflowsIsAnError() throws {
        let server = try Peer.server()
        server.receive(Raw.request(1) + Raw.windowUpdate(1, 0x7FFF_FFFF))
        #expect(server.received.last == .malformed(1, .frame(.flowControlError)))
        server.receive(Raw.windowUpdate(0, 0x7FFF_FFFF))
        #expect(server.received.last == .failed(.flowControlError))
        let zero = try Peer.server()
        zero.receive(Raw.request(1) + Raw.windowUpdate(1, 0))
        #expect(zero.received.last == .failed(.protocolError))
    }

    @Test func paddingIsPaidBackByItself() throws {
        var settings = HTTP2Settings()
        settings.initialWindow = 1000
        let server = try Peer.server(settings: settings)
        server.consumes = false
        server.receive(Raw.request(1, flags: Raw.endHeaders))
        for _ in 0..<3 { server.receive(Raw.frame(0, 8, 1, [200, 0x61] + [UInt8](repeating: 0, count: 200))) }
        #expect(server.received.last == .data(1, Array("aaa".utf8)))
        #expect(SentFrame.all(in: server.collect()).contains { $0.kind == .windowUpdate && $0.stream == 1 })
    }
}
