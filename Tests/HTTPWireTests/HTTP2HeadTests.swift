import PinproxyHTTPWire
import Testing

/// Heads received over HTTP/2, as text.
@Suite struct HTTP2HeadTests {
    private func read(
        _ text: String, lines: Int, ends: Bool = false, extended: Bool = false
    ) -> (
        RequestHead, HeadProgress
    ) {
        var head = RequestHead()
        let progress = head.parseHTTP2(
            Array(text.utf8).span, HTTP2Framing(lines: lines, ends: ends, isExtendedConnect: extended))
        return (head, progress)
    }

    private func isComplete(_ progress: HeadProgress) -> Bool { if case .complete = progress { true } else { false } }
    private func code(_ progress: HeadProgress) -> WireError.Code? {
        if case .malformed(let error) = progress { error.code } else { nil }
    }

    @Test(arguments: [
        ("GET", "", false, BodyLength.unknown), ("GET", "", true, .none), ("POST", "", true, .known(0)),
        ("POST", "", false, .unknown),
        ("PUT", "content-length: 0\r\n", true, .known(0)), ("GET", "content-length: 7\r\n", false, .known(7)),
        ("PATCH", "", true, .known(0)),
    ])
    func theEndOfTheStreamSaysWhetherThereIsABody(
        method: String, length: String, ends: Bool, body: BodyLength
    ) {
        let (head, progress) = read(
            "\(method) /a HTTP/1.1\r\nHost: a.test\r\n\(length)\r\n", lines: length.isEmpty ? 1 : 2, ends: ends)
        #expect(isComplete(progress))
        #expect(head.bodyLength == body)
        #expect(head.version == .http2)
    }

    @Test(arguments: [
        ("connection: close", WireError.Code.connectionSpecificField), ("keep-alive: 5", .connectionSpecificField),
        ("proxy-connection: x", .connectionSpecificField), ("upgrade: websocket", .connectionSpecificField),
        ("transfer-encoding: chunked", .connectionSpecificField), ("te: gzip", .connectionSpecificField),
        ("x: y\r\nz: w", .hiddenLine), ("host: b.test", .repeatedHost), ("content-length: x", .invalidContentLength),
    ])
    func whatHTTP2ForbidsIsMalformedWhoeverHasLetItPass(line: String, expected: WireError.Code) {
        let (_, progress) = read("GET / HTTP/1.1\r\nHost: a.test\r\n\(line)\r\n\r\n", lines: 2)
        #expect(code(progress) == expected)
    }

    @Test func aTargetIsAPath() {
        #expect(code(read("GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", lines: 1).1) == .targetOfOtherForm)
        #expect(code(read("GET b HTTP/1.1\r\nHost: a.test\r\n\r\n", lines: 1).1) == .target)
        #expect(code(read("GET /a b HTTP/1.1\r\nHost: a.test\r\n\r\n", lines: 1).1) != nil)
        for text in [
            "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
        ] {
            #expect(isComplete(read(text, lines: 1).1), "\(text)")
        }
    }

    @Test func aHandshakeIsOneOfHTTP11() {
        let text = "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        let (head, progress) = read(text, lines: 3, extended: true)
        #expect(isComplete(progress))
        #expect(head.wantsUpgrade)
        #expect(head.bodyLength == .none)
        #expect(code(read(text, lines: 3).1) == .connectionSpecificField)
        #expect(code(read(text.replacing("websocket", with: "a, b"), lines: 3, extended: true).1) == .connectProtocol)
    }

    @Test(arguments: [
        (200, "", Method.get, false, BodyLength.unknown), (200, "", .get, true, .known(0)),
        (200, "", .head, true, .none),
        (204, "", .get, true, .none), (304, "content-length: 5\r\n", .get, true, .none),
        (200, "content-length: 5\r\n", .get, false, .known(5)),
        (200, "", .connect, false, .none), (103, "", .get, false, .none), (404, "", .connect, false, .unknown),
    ])
    func aResponsesBodyFollowsFromMethodStatusAndEnd(
        status: Int, length: String, method: Method, ends: Bool, body: BodyLength
    ) {
        var head = ResponseHead()
        let progress = head.parseHTTP2(
            Array("HTTP/1.1 \(status) \r\n\(length)\r\n".utf8).span, to: method,
            HTTP2Framing(lines: length.isEmpty ? 0 : 1, ends: ends))
        #expect(isComplete(progress))
        #expect(head.bodyLength == body)
        #expect(head.status == status && head.version == .http2)
    }

    @Test func nothingSwitchesProtocols() {
        var head = ResponseHead()
        let text = Array("HTTP/1.1 101 \r\n\r\n".utf8)
        #expect(code(head.parseHTTP2(text.span, to: .get, HTTP2Framing(lines: 0, ends: false))) == .switchingProtocols)
    }

    // MARK: Passed on in HTTP/1.1

    private let via = ViaPseudonym(token: 1)

    private func passedOn(_ text: String, lines: Int, ends: Bool) throws -> String {
        let (head, _) = read(text, lines: lines, ends: ends)
        let origin = try Authority.parse("a.test", defaultPort: 443).get()
        var out: [UInt8] = []
        HeadWriter.write(
            request: head, from: Array(text.utf8).span, target: .originForm, authority: origin, defaultPort: 443,
            via: via,
            forwardUpgrade: false, into: &out)
        return String(decoding: out, as: UTF8.self)
    }

    @Test func http11IsToldWhatTheEndOfTheStreamSays() throws {
        let text = "POST / HTTP/1.1\r\nHost: a.test\r\nte: trailers\r\n\r\n"
        #expect(
            try passedOn(text, lines: 2, ends: true)
                == """
                POST / HTTP/1.1\r\nHost: a.test\r\nVia: 2 \(via)\r\nContent-Length: 0\r\nTE: trailers\r\nConnection: \
                TE\r\n\r\n
                """
        )
        #expect(
            try passedOn(text, lines: 2, ends: false)
                == """
                POST / HTTP/1.1\r\nHost: a.test\r\nVia: 2 \(via)\r\nTransfer-Encoding: chunked\r\nTE: \
                trailers\r\nConnection: TE\r\n\r\n
                """
        )
        #expect(
            try passedOn("POST / HTTP/1.1\r\nHost: a.test\r\ncontent-length: 0\r\n\r\n", lines: 2, ends: true)
                == "POST / HTTP/1.1\r\nHost: a.test\r\ncontent-length: 0\r\nVia: 2 \(via)\r\n\r\n")
    }

    @Test func aClientOfHTTP11IsToldOfAnEmptyBody() {
        var head = ResponseHead()
        let text = Array("HTTP/1.1 200 \r\n\r\n".utf8)
        _ = head.parseHTTP2(text.span, to: .get, HTTP2Framing(lines: 0, ends: true))
        var out: [UInt8] = []
        HeadWriter.write(
            response: head, from: text.span, clientVersion: .http11, connection: .keepAlive, inChunks: false, via: via,
            into: &out)
        #expect(String(decoding: out, as: UTF8.self) == "HTTP/1.1 200 \r\nVia: 2 \(via)\r\nContent-Length: 0\r\n\r\n")
    }

    @Test func aRequestThatIsWrittenAnewStaysOneOfHTTP2() throws {
        let text = "PUT /a HTTP/1.1\r\nHost: a.test\r\nx: y\r\n\r\n"
        let (head, _) = read(text, lines: 2)
        let bytes = Array(text.utf8)
        let request = OwnedRequest(RequestView(head, bytes.span))
        let moved = try request.rewritten(target: Array("/b".utf8))
        #expect(moved.head.version == .http2 && moved.head.bodyLength == .unknown)
        let other = try request.rewritten(contentType: "text/plain", bodyLength: 3)
        #expect(other.head.version == .http2 && other.head.bodyLength == .known(3))
        let part = try request.asking(from: 5, ifStill: Array("\"e\"".utf8))
        #expect(part.head.version == .http2 && part.head.bodyLength == .unknown)
    }
}
