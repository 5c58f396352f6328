import PinproxyHTTP2
import PinproxyHTTPWire
import Testing

/// Requests and responses between two sessions.
@Suite struct ExchangeTests {
    @Test func aRequestAndItsResponse() throws {
        let pair = try Pair()
        let stream = try #require(pair.client.session.submitRequest(request(), hasBody: false))
        pair.exchange()
        pair.server.session.submitResponse(stream, response(), hasBody: true)
        pair.server.say(stream, "hello")
        pair.exchange()
        #expect(pair.events.server == [.head(1, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", ends: true, body: .none)])
        #expect(
            pair.events.client == [
                .head(1, "HTTP/1.1 200 \r\n\r\n", ends: false, body: .unknown), .data(1, Array("hello".utf8)),
                .ended(1),
            ])
        #expect(pair.client.session.openStreams == 0)
        #expect(pair.server.session.openStreams == 0)
    }

    @Test func bodiesAndTrailersGoBothWays() throws {
        let pair = try Pair()
        let stream = try #require(pair.client.session.submitRequest(request("POST"), hasBody: true))
        pair.client.say(stream, "question", trailers: block(["x-sum": "7", "connection": "x"]))
        pair.exchange()
        pair.server.session.submitResponse(stream, response(), hasBody: true)
        pair.server.say(stream, "answer", trailers: block(["grpc-status": "0", "content-length": "9"]))
        pair.exchange()
        #expect(
            pair.events.server == [
                .head(1, "POST / HTTP/1.1\r\nHost: a.test\r\n\r\n", ends: false, body: .unknown),
                .data(1, Array("question".utf8)),
                .malformed(1, .field),
            ])
        #expect(pair.events.client.contains(.reset(1, .protocolError)))

        let again = try #require(pair.client.session.submitRequest(request("POST"), hasBody: true))
        pair.client.say(again, "", trailers: block(["x-sum": "7", "authorization": "no trailer"]))
        pair.exchange()
        pair.server.session.submitResponse(again, response(), hasBody: true)
        pair.server.say(again, "answer", trailers: block(["grpc-status": "0", "etag": "\"x\""]))
        pair.exchange()
        #expect(pair.events.server.last == .trailers(3, "x-sum: 7\r\n"))
        #expect(
            pair.events.client.suffix(2) == [
                .data(3, Array("answer".utf8)), .trailers(3, "grpc-status: 0\r\netag: \"x\"\r\n"),
            ])
        #expect(pair.client.session.openStreams == 0)
    }

    @Test func aResponseWithoutABodyAndTrailersOnly() throws {
        let pair = try Pair()
        let stream = try #require(pair.client.session.submitRequest(request("POST"), hasBody: true))
        pair.client.say(stream, "")
        pair.exchange()
        pair.server.session.submitResponse(stream, block([":status": "200", "grpc-status": "14"]), hasBody: false)
        pair.exchange()
        #expect(pair.events.server.last == .ended(1))
        #expect(
            pair.events.client == [.head(1, "HTTP/1.1 200 \r\ngrpc-status: 14\r\n\r\n", ends: true, body: .known(0))])
    }

    @Test func interimHeadsComeBeforeTheFinalOne() throws {
        let pair = try Pair()
        let stream = try #require(pair.client.session.submitRequest(request("PUT"), hasBody: true))
        pair.exchange()
        pair.server.session.submitInterim(stream, block([":status": "100"]))
        pair.server.session.submitInterim(stream, block([":status": "103", "link": "</a>"]))
        pair.exchange()
        pair.client.say(stream, "body")
        pair.exchange()
        pair.server.session.submitResponse(stream, response(204), hasBody: false)
        pair.exchange()
        #expect(
            pair.events.client == [
                .head(1, "HTTP/1.1 100 \r\n\r\n", ends: false, body: .none),
                .head(1, "HTTP/1.1 103 \r\nlink: </a>\r\n\r\n", ends: false, body: .none),
                .head(1, "HTTP/1.1 204 \r\n\r\n", ends: true, body: .none),
            ])
        #expect(pair.events.server.suffix(2) == [.data(1, Array("body".utf8)), .ended(1)])
    }

    @Test func aResponseMayComeBeforeTheRequestHasEnded() throws {
        let pair = try Pair()
        let stream = try #require(pair.client.session.submitRequest(request("POST"), hasBody: true))
        pair.client.say(stream, "begin", isLast: false)
        pair.exchange()
        pair.server.session.abandonRequest(stream)
        pair.server.session.submitResponse(stream, response(403), hasBody: false)
        pair.exchange()
        #expect(
            pair.events.client == [
                .head(1, "HTTP/1.1 403 \r\n\r\n", ends: true, body: .known(0)), .reset(1, .noError),
            ])
        #expect(pair.client.session.openStreams == 0)
        #expect(pair.server.session.openStreams == 0)
    }

    @Test(arguments: [("HEAD", 200), ("GET", 304)])
    func aLengthMayBeToldOfABodyThatIsntSent(method: String, status: Int) throws {
        let pair = try Pair()
        let stream = try #require(pair.client.session.submitRequest(request(method), hasBody: false))
        pair.client.methods[stream] = method == "HEAD" ? .head : .get
        pair.exchange()
        pair.server.session.submitResponse(
            stream, block([":status": "\(status)", "content-length": "9"]), hasBody: false)
        pair.exchange()
        #expect(
            pair.events.client == [
                .head(1, "HTTP/1.1 \(status) \r\ncontent-length: 9\r\n\r\n", ends: true, body: .none)
            ])
    }

    @Test func aClientsResetEndsTheStream() throws {
        let pair = try Pair()
        let stream = try #require(pair.client.session.submitRequest(request(), hasBody: false))
        pair.exchange()
        pair.client.session.reset(stream, .cancel)
        pair.exchange()
        #expect(pair.events.server.last == .reset(1, .cancel))
        #expect(pair.events.client.isEmpty)
        // Late calls do no harm.
        pair.server.session.submitResponse(stream, response(), hasBody: true)
        pair.server.session.reset(stream, .cancel)
        pair.server.say(stream, "late")
        pair.exchange()
        #expect(pair.events.client.isEmpty)
        #expect(pair.server.session.openStreams == 0)
    }

    @Test func aResetBeforeTheRequestHasLeftTakesItBack() throws {
        let pair = try Pair()
        let stream = try #require(pair.client.session.submitRequest(request(), hasBody: false))
        pair.client.session.reset(stream, .cancel)
        pair.exchange()
        #expect(pair.events.server.isEmpty)
        #expect(pair.client.session.openStreams == 0)
        #expect(try #require(pair.client.session.submitRequest(request(), hasBody: false)).rawValue == 3)
    }

    @Test func aResetDropsTheStreamsEventsAndReturnsTheirBytes() throws {
        var settings = HTTP2Settings()
        settings.connectionWindow = 65_535
        let client = try Peer(.client)
        let server = try Peer(.server, settings: settings)
        let stream = try #require(client.session.submitRequest(request("POST"), hasBody: true))
        client.say(stream, String(repeating: "x", count: 60_000))
        var bytes = client.collect()
        client.receive(server.collect())
        bytes += client.collect()
        #expect(server.session.receive(bytes.span, at: 0) == bytes.count)
        while let event = server.session.nextEvent() {
            if case .request(let stream, _, _) = event { server.session.reset(stream, .cancel) }
            if case .data = event { Issue.record("data of a stream that was reset") }
        }
        let frames = SentFrame.all(in: server.collect())
        #expect(frames.contains { $0.kind == .windowUpdate && $0.stream == 0 && $0.payload == Raw.number(60_000) })
        #expect(frames.contains { $0.kind == .reset && $0.code == .cancel })
    }

    @Test func streamsBeyondTheLimitWaitOrAreRefused() throws {
        var settings = HTTP2Settings()
        settings.maxConcurrentStreams = 2
        let pair = try Pair(server: settings)
        pair.exchange()
        #expect(pair.client.session.maxConcurrentStreams == 2)
        for _ in 0..<3 { _ = pair.client.session.submitRequest(request(), hasBody: false) }
        pair.exchange()
        #expect(pair.events.server.count == 2)
        #expect(pair.client.session.openStreams == 3)
        pair.server.session.submitResponse(HTTP2StreamID(1), response(), hasBody: false)
        pair.exchange()
        #expect(pair.events.server.count == 3)

        // A client may exceed the limit before it knows it.
        let hasty = try Peer(.server, settings: settings)
        _ = hasty.collect()
        hasty.receive(Raw.client(acknowledges: false) + Raw.request(1) + Raw.request(3) + Raw.request(5))
        #expect(hasty.received.count { if case .head = $0 { true } else { false } } == 2)
        let frames = SentFrame.all(in: hasty.collect())
        #expect(frames.contains { $0.kind == .reset && $0.stream == 5 && $0.code == .refusedStream })
        #expect(!hasty.session.isGoingAway)
        // Afterwards that is a connection error.
        hasty.receive(Raw.settingsAck + Raw.request(7))
        #expect(hasty.received.last == .failed(.protocolError))
    }

    @Test func aTunnelCarriesBytesBothWays() throws {
        let pair = try Pair()
        let stream = try #require(
            pair.client.session.submitRequest(block([":method": "CONNECT", ":authority": "a.test:443"]), hasBody: true))
        pair.client.methods[stream] = .connect
        pair.exchange()
        pair.server.session.submitResponse(stream, response(), hasBody: true)
        pair.server.say(stream, "down", isLast: false)
        pair.client.say(stream, "up", isLast: false)
        pair.exchange()
        #expect(
            pair.events.server == [
                .head(1, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", ends: false, body: .none),
                .data(1, Array("up".utf8)),
            ])
        #expect(
            pair.events.client == [
                .head(1, "HTTP/1.1 200 \r\n\r\n", ends: false, body: .none), .data(1, Array("down".utf8)),
            ])
        pair.client.say(stream, "")
        pair.exchange()
        #expect(pair.events.server.last == .ended(1))
        pair.server.say(stream, "!")
        pair.exchange()
        #expect(pair.events.client.suffix(2) == [.data(1, Array("down!".utf8)), .ended(1)])
    }

    @Test func anExtendedCONNECTReadsAsAHandshake() throws {
        var settings = HTTP2Settings()
        settings.enablesConnectProtocol = true
        let pair = try Pair(server: settings)
        #expect(!pair.client.session.acceptsConnectProtocol)
        pair.exchange()
        #expect(pair.client.session.acceptsConnectProtocol)
        let head = block([
            ":method": "CONNECT", ":protocol": "websocket", ":scheme": "https", ":authority": "a.test",
            ":path": "/chat",
            "sec-websocket-version": "13",
        ])
        let stream = try #require(pair.client.session.submitRequest(head, hasBody: true))
        let bytes = pair.client.collect()
        #expect(pair.server.session.receive(bytes.span, at: 0) == bytes.count)
        var (read, text) = (RequestHead(), [UInt8]())
        while let event = pair.server.session.nextEvent() {
            guard case .request(stream, let place, ends: false) = event else { continue }
            #expect(place.isExtendedConnect)
            #expect(place.scheme == .https)
            guard case .complete = pair.server.session.readRequest(place, into: &read, bytes: &text) else {
                Issue.record("not complete")
                continue
            }
        }
        #expect(
            String(decoding: text, as: UTF8.self)
                == """
                GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: \
                websocket\r\nsec-websocket-version: 13\r\n\r\n
                """
        )
        #expect(read.wantsUpgrade && read.version == .http2 && read.bodyLength == .none)
        pair.server.session.submitResponse(stream, response(), hasBody: true)
        pair.client.methods[stream] = .connect
        pair.exchange()
        #expect(pair.events.client == [.head(1, "HTTP/1.1 200 \r\n\r\n", ends: false, body: .none)])
    }

    @Test func anExtendedCONNECTThatIsntAllowedIsMalformed() throws {
        let server = try Peer.server()
        server.receive(
            Raw.headers(
                1,
                [
                    (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"), (":authority", "a.test"),
                    (":path", "/"),
                ]))
        #expect(server.received == [.malformed(1, .field)])
    }

    @Test func cookiesAreJoined() throws {
        let server = try Peer.server()
        server.receive(Raw.request(1, [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", "c=3")]))
        #expect(
            server.received == [
                .head(
                    1, "GET / HTTP/1.1\r\nHost: a.test\r\nx: y\r\ncookie: a=1; b=2; c=3\r\n\r\n", ends: true,
                    body: .none)
            ])
    }

    @Test func hostTakesThePlaceOfAMissingAuthority() throws {
        let server = try Peer.server()
        server.receive(
            Raw.headers(1, [(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "b.test")])
                + Raw.request(3, [("host", "A.TEST")]) + Raw.request(5, [("host", "b.test")]))
        #expect(
            server.received == [
                .head(1, "GET / HTTP/1.1\r\nhost: b.test\r\n\r\n", ends: true, body: .none),
                .head(3, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", ends: true, body: .none),
                .malformed(5, .hostDiffers),
            ])
    }

    @Test(arguments: [
        ("POST", BodyLength.known(0)), ("PUT", .known(0)), ("PATCH", .known(0)), ("GET", .none), ("DELETE", .none),
    ])
    func aRequestThatEndsWithItsHeadHasAnEmptyBodyOrNone(method: String, body: BodyLength) throws {
        let server = try Peer.server()
        server.receive(Raw.headers(1, [(":method", method)] + Raw.get.dropFirst()))
        #expect(server.received == [.head(1, "\(method) / HTTP/1.1\r\nHost: a.test\r\n\r\n", ends: true, body: body)])
    }

    @Test func aBodyMustBeAsLongAsWasSaid() throws {
        let server = try Peer.server()
        let length = [("content-length", "5")]
        server.receive(Raw.request(1, length, flags: Raw.endHeaders) + Raw.data(1, "12345", ends: true))
        #expect(server.received.suffix(2) == [.data(1, Array("12345".utf8)), .ended(1)])
        server.receive(Raw.request(3, length, flags: Raw.endHeaders) + Raw.data(3, "1234", ends: true))
        #expect(server.received.suffix(2) == [.data(3, Array("1234".utf8)), .malformed(3, .frame(.protocolError))])
        server.receive(Raw.request(5, length, flags: Raw.endHeaders) + Raw.data(5, "123") + Raw.data(5, "456"))
        #expect(server.received.suffix(2) == [.data(5, Array("123".utf8)), .malformed(5, .frame(.protocolError))])
        server.receive(Raw.request(7, length))
        #expect(server.received.last == .malformed(7, .message))
        server.receive(
            Raw.request(9, length, flags: Raw.endHeaders) + Raw.data(9, "1234") + Raw.headers(9, [("x", "y")]))
        #expect(server.received.last == .malformed(9, .message))
        let resets = SentFrame.all(in: server.collect()).filter { $0.kind == .reset }
        #expect(resets.map(\.stream) == [3, 5, 7, 9])
        #expect(resets.allSatisfy { $0.code == .protocolError })
    }

    @Test func dataOfAStreamThatWasResetIsPaidBack() throws {
        let server = try Peer.server()
        server.receive(Raw.request(1, flags: Raw.endHeaders))
        server.session.reset(HTTP2StreamID(1), .cancel)
        _ = server.collect()
        server.received = []
        for _ in 0..<80 { server.receive(Raw.data(1, String(repeating: "x", count: 16_384))) }
        #expect(server.received.isEmpty)
        #expect(SentFrame.all(in: server.collect()).contains { $0.kind == .windowUpdate && $0.stream == 0 })
    }
}
