import PinproxyHTTP2
import PinproxyHTTPWire
import Testing

/// The end of a connection (RFC 9113 sections 5.4.1 and 6.8).
@Suite struct GoingAwayTests {
    @Test func aGracefulEndTakesTwoGOAWAYs() throws {
        let pair = try Pair()
        let first = try #require(pair.client.session.submitRequest(request(), hasBody: false))
        pair.exchange()
        pair.server.session.announceGoAway()
        pair.exchange()
        #expect(pair.client.received.last == .goAway(Int32.max, .noError, ""))
        #expect(pair.client.session.isGoingAway && !pair.server.session.isGoingAway)
        #expect(pair.client.session.submitRequest(request(), hasBody: false) == nil)
        pair.server.session.goAway(.noError)
        pair.server.session.goAway(.noError)
        pair.server.session.submitResponse(first, response(), hasBody: false)
        #expect(pair.server.session.isGoingAway)
        pair.exchange()
        #expect(
            pair.events.client == [
                .goAway(Int32.max, .noError, ""), .goAway(1, .noError, ""),
                .head(1, "HTTP/1.1 200 \r\n\r\n", ends: true, body: .known(0)),
            ])
        #expect(!pair.client.session.wantsToLive && !pair.server.session.wantsToLive)
    }

    @Test func requestsThatAGOAWAYLeavesOutAreRefusedAndMayBeSentAgain() throws {
        let client = try Peer.client(["GET", "GET", "GET"])
        client.receive(Raw.frame(7, 0, 0, Raw.number(3) + Raw.number(11) + Array("calm".utf8)))
        #expect(client.received == [.goAway(3, .enhanceYourCalm, "calm"), .reset(5, .refusedStream)])
        #expect(client.session.openStreams == 2)
        #expect(client.session.wantsToLive)
        client.receive(Raw.headers(1, [(":status", "200")]) + Raw.headers(3, [(":status", "200")]))
        #expect(client.session.openStreams == 0)
        #expect(!client.session.wantsToLive)
    }

    @Test func aRequestThatWaitsWhenAGOAWAYComesIsRefused() throws {
        let client = try Peer.client([])
        client.receive(Raw.settings([(3, 0)]))
        let stream = try #require(client.session.submitRequest(request(), hasBody: false))
        _ = client.collect()
        client.received = []
        client.receive(Raw.settings([(3, 10)]) + Raw.frame(7, 0, 0, Raw.number(0) + Raw.number(0)))
        _ = client.collect()
        #expect(client.received.last == .reset(stream.rawValue, .refusedStream))
        #expect(client.session.openStreams == 0)
    }

    @Test func aServersLastGOAWAYSaysWhichRequestWasTheLast() throws {
        let server = try Peer.server()
        server.receive(Raw.request(1) + Raw.request(3))
        server.session.goAway(.internalError)
        let frame = try #require(SentFrame.all(in: server.collect()).first { $0.kind == .goAway })
        #expect(frame.payload == Raw.number(3) + Raw.number(2))
        #expect(!server.received.contains(.failed(.internalError)))
        server.received = []
        server.receive(Raw.request(5))
        #expect(server.received.isEmpty)
        server.session.submitResponse(HTTP2StreamID(1), response(), hasBody: false)
        #expect(SentFrame.all(in: server.collect()).contains { $0.kind == .headers && $0.stream == 1 })
    }

    @Test func anErrorOfTheConnectionEndsItWithAGOAWAY() throws {
        let server = try Peer.server()
        server.receive(Raw.request(1) + Raw.frame(4, 0, 1) + Raw.request(3))
        #expect(server.received.last == .failed(.protocolError))
        #expect(server.received.count == 2)
        #expect(server.session.wantsToLive && server.session.wantsToSend && server.session.isGoingAway)
        let frames = SentFrame.all(in: server.collect())
        #expect(frames.last?.kind == .goAway && frames.last?.code == .protocolError)
        #expect(!server.session.wantsToLive && !server.session.wantsToSend)
        // Later calls do no harm.
        let stream = HTTP2StreamID(1)
        server.session.submitResponse(stream, response(), hasBody: true)
        server.session.submitInterim(stream, response(103))
        server.say(stream, "x")
        server.session.consumed(1, of: stream)
        server.session.consumedOfConnection(1)
        server.session.growStreamWindow(to: 1 << 20)
        server.session.growConnectionWindow(to: 1 << 22)
        server.session.ping(1)
        server.session.announceGoAway()
        server.session.goAway(.noError)
        server.session.reset(stream, .cancel)
        server.session.abandonRequest(stream)
        server.session.setPriority(HTTP2Priority(), of: stream)
        server.receive(Raw.request(5))
        #expect(server.collect().isEmpty)
        #expect(server.received.count == 2)
    }

    static let faults: [(String, [UInt8], HTTP2ErrorCode)] = [
        ("a frame that is too large", Raw.frame(0, 0, 1, [UInt8](repeating: 0, count: 16_385)), .frameSizeError),
        ("PING of seven bytes", Raw.frame(6, 0, 0, [1, 2, 3, 4, 5, 6, 7]), .frameSizeError),
        ("SETTINGS of five bytes", Raw.frame(4, 0, 0, [0, 1, 2, 3, 4]), .frameSizeError),
        ("an acknowledgement of nothing", Raw.settingsAck, .protocolError),
        ("DATA on the connection", Raw.frame(0, 0, 0, [1]), .protocolError),
        ("DATA on an idle stream", Raw.data(1, "x"), .protocolError),
        ("RST_STREAM of an idle stream", Raw.reset(9), .protocolError),
        ("WINDOW_UPDATE of an idle stream", Raw.windowUpdate(9, 1), .protocolError),
        ("CONTINUATION without a head", Raw.frame(9, 4, 1, Raw.literal("x", "y")), .protocolError),
        ("PUSH_PROMISE from a client", Raw.frame(5, 4, 1, Raw.number(2)), .protocolError),
        ("a request with an even number", Raw.request(2), .protocolError),
        ("padding without a length", Raw.request(1, flags: Raw.endHeaders) + Raw.frame(0, 8, 1), .protocolError),
        (
            "padding that is too long", Raw.request(1, flags: Raw.endHeaders) + Raw.frame(0, 8, 1, [9, 1]),
            .protocolError
        ),
        ("a head that isn't HPACK", Raw.frame(1, 5, 1, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]), .compressionError),
        ("an index that isn't in the table", Raw.frame(1, 5, 1, [0xFE]), .compressionError),
        ("another frame within a head", Raw.frame(1, 1, 1, [0x82]) + Raw.ping(), .protocolError),
        ("DATA after the end", Raw.request(1) + Raw.data(1, "x"), .streamClosed),
        ("a head after the end", Raw.request(1) + Raw.request(1), .streamClosed),
        ("a window that is too large", Raw.settings([(4, 0x8000_0000)]), .flowControlError),
        ("a frame size that is too small", Raw.settings([(5, 100)]), .protocolError),
        (
            "a stream that depends on itself",
            Raw.frame(1, 0x25, 1, Raw.number(1) + [16] + Raw.literal(":method", "GET")), .protocolError
        ),
    ]

    @Test(arguments: faults)
    func aFaultOfTheConnectionFailsItAtOnce(what: String, bytes: [UInt8], code: HTTP2ErrorCode) throws {
        let server = try Peer.server()
        server.receive(bytes)
        #expect(server.received.last == .failed(code), "\(what)")
        #expect(SentFrame.all(in: server.collect()).last?.code == code)
    }

    @Test(arguments: ["GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r", "\u{16}\u{3}\u{1}"])
    func whatIsntHTTP2IsRefused(text: String) throws {
        let server = try Peer(.server)
        server.receive(Array(text.utf8))
        #expect(server.received == [.failed(.protocolError)])
    }

    @Test func settingsComeFirst() throws {
        let server = try Peer(.server)
        server.receive(Raw.preface + Raw.ping())
        #expect(server.received == [.failed(.protocolError)])
        let client = try Peer(.client)
        client.receive(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))
        #expect(client.received == [.failed(.protocolError)])
    }

    @Test func aPushIsRefused() throws {
        let client = try Peer.client()
        client.receive(Raw.frame(5, 4, 1, Raw.number(2) + Raw.literal(":method", "GET")))
        #expect(client.received.last == .failed(.protocolError))
    }

    @Test func aPINGIsAnsweredAndItsAnswerHeard() throws {
        let pair = try Pair()
        pair.client.session.ping(0x0102_0304_0506_0708)
        pair.exchange()
        #expect(pair.client.received.contains(.pong(0x0102_0304_0506_0708)))
    }

    @Test func acknowledgementsForAPeerThatNeverReadsAreBounded() throws {
        var limits = HTTP2Limits()
        limits.unreadAcknowledgements = 10
        let server = try Peer.server(limits: limits)
        server.receive((0..<10).flatMap { _ in Raw.ping() })
        #expect(server.received.isEmpty)
        server.receive(Raw.ping())
        #expect(server.received == [.failed(.enhanceYourCalm)])
    }

    @Test func aQueueForAPeerThatNeverReadsIsNoticed() throws {
        var limits = HTTP2Limits()
        limits.queuedFrames = 20
        let server = try Peer.server(limits: limits)
        server.receive((0..<21).flatMap { _ in Raw.ping() })
        #expect(server.session.isClogged)
        _ = server.collect()
        #expect(!server.session.isClogged)
    }
}
