import PinproxyHTTPWire
import Testing

@Suite struct HeadWriterTests {
    private func rewritten(
        _ text: String, target: TargetRewrite = .originForm, via: ViaPseudonym? = .test, forwardUpgrade: Bool = true,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> String {
        let head = try #require(request(text).head, sourceLocation: sourceLocation)
        let authority = try Authority.parse("api.example.test:8443", defaultPort: nil).get()
        var out: [UInt8] = []
        HeadWriter.write(
            request: head, from: Array(text.utf8).span, target: target, authority: authority, defaultPort: 443,
            via: via, forwardUpgrade: forwardUpgrade, into: &out)
        return String(decoding: out, as: UTF8.self)
    }

    private func rewritten(
        response text: String, clientVersion: HTTPVersion = .http11, connection: ClientPersistence = .keepAlive,
        inChunks: Bool = false, via: ViaPseudonym? = .test, to method: PinproxyHTTPWire.Method = .get,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> String {
        let head = try #require(response(text, to: method).head, sourceLocation: sourceLocation)
        var out: [UInt8] = []
        HeadWriter.write(
            response: head, from: Array(text.utf8).span, clientVersion: clientVersion, connection: connection,
            inChunks: inChunks, via: via, into: &out)
        return String(decoding: out, as: UTF8.self)
    }

    @Test func whatIsEndToEndPassesAsItCame() throws {
        let text =
            """
            PATCH /x?y=z HTTP/1.1\r\nhOst: a:1\r\nAccept:*/*\r\nX-A:  b  \r\nContent-Length: 3\r\nExpect: \
            100-continue\r\nTrailer: X\r\nCookie: c\r\n\r\n
            """
        #expect(try rewritten(text, via: nil) == text)
    }

    @Test func hopByHopFieldsStayBehind() throws {
        let text =
            """
            POST / HTTP/1.1\r\nConnection: close, X-Hop, x-other\r\nHost: a\r\nKeep-Alive: timeout=5\r\nX-Hop: \
            1\r\nAccept: */*\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\nProxy-Authenticate: \
            Basic\r\nTE: gzip\r\nX-OTHER: 2\r\nUpgrade: foo\r\nHTTP2-Settings: A\r\nTransfer-Encoding: \
            chunked\r\nX-Hop-Not: 3\r\n\r\n
            """
        #expect(
            try rewritten(text)
                == """
                POST / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nX-Hop-Not: 3\r\nVia: 1.1 \
                pinproxy-0123456789abcdef\r\nTransfer-Encoding: chunked\r\n\r\n
                """
        )
    }

    @Test func connectionTakesNoEndToEndFieldAway() throws {
        let text =
            """
            POST / HTTP/1.1\r\nHost: a\r\nConnection: host, content-length, authorization, cookie, transfer-encoding, \
            via\r\nContent-Length: 3\r\nAuthorization: x\r\nCookie: c\r\n\r\n
            """
        #expect(
            try rewritten(text, via: nil)
                == "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nAuthorization: x\r\nCookie: c\r\n\r\n")
    }

    @Test func viaNamesTheHopsInOrder() throws {
        let start = "GET / HTTP/1.1\r\nHost: a\r\n"
        #expect(try rewritten(start + "\r\n") == start + "Via: 1.1 pinproxy-0123456789abcdef\r\n\r\n")
        #expect(
            try rewritten(start + "Via: 1.0 x\r\nA: b\r\nVia: 1.1 y\r\nC: d\r\n\r\n")
                == start + "Via: 1.0 x\r\nA: b\r\nVia: 1.1 y, 1.1 pinproxy-0123456789abcdef\r\nC: d\r\n\r\n")
        #expect(try rewritten(start + "Via:\r\n\r\n") == start + "Via: 1.1 pinproxy-0123456789abcdef\r\n\r\n")
        #expect(try rewritten(start + "Via: 1.0 x\r\n\r\n", via: nil) == start + "Via: 1.0 x\r\n\r\n")
    }

    /// A request to an origin by a client without proxy support becomes a request to a proxy.
    @Test func pathsBecomeURLs() throws {
        let rest = "Host: a\r\n\r\n"
        func target(_ line: String) throws -> Substring {
            try rewritten("\(line) HTTP/1.1\r\n\(rest)", target: .absoluteForm, via: nil).split(separator: " ")[1]
        }
        #expect(try target("GET /x?y=z") == "http://api.example.test:8443/x?y=z")
        #expect(try target("OPTIONS *") == "http://api.example.test:8443")
        #expect(try target("GET http://a/x") == "http://a/x")
    }

    @Test func http10RequestsLeaveAs11() throws {
        #expect(
            try rewritten("GET / HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\r\n")
                == "GET / HTTP/1.1\r\nHost: api.example.test:8443\r\nVia: 1.0 pinproxy-0123456789abcdef\r\n\r\n")
    }

    @Test func hostsOfAddressesHaveBrackets() throws {
        let text = "GET / HTTP/1.0\r\n\r\n"
        let head = try #require(request(text).head)
        let authority = try Authority.parse("[::1]:443", defaultPort: nil).get()
        var out: [UInt8] = []
        HeadWriter.write(
            request: head, from: Array(text.utf8).span, target: .originForm, authority: authority, defaultPort: 443,
            via: nil, forwardUpgrade: false, into: &out)
        #expect(String(decoding: out, as: UTF8.self) == "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n")
    }

    @Test(arguments: [
        ("GET http://a.test/x?y HTTP/1.1", "GET /x?y HTTP/1.1"), ("GET http://a.test HTTP/1.1", "GET / HTTP/1.1"),
        ("GET http://a.test?q HTTP/1.1", "GET /?q HTTP/1.1"), ("OPTIONS http://a.test HTTP/1.1", "OPTIONS * HTTP/1.1"),
        ("OPTIONS http://a.test/ HTTP/1.1", "OPTIONS / HTTP/1.1"),
    ])
    func absoluteFormBecomesOriginForm(_ line: String, _ expected: String) throws {
        #expect(
            try rewritten("\(line)\r\nA: b\r\nHost: other.test\r\n\r\n", via: nil)
                == "\(expected)\r\nHost: a.test\r\nA: b\r\n\r\n")
        #expect(
            try rewritten("\(line)\r\nHost: other.test\r\n\r\n", target: .absoluteForm, via: nil)
                == "\(line)\r\nHost: a.test\r\n\r\n")
    }

    @Test(arguments: [("010", "10"), ("0", "0"), ("000", "0"), ("00000000000000000000000000008", "8"), ("100", "100")])
    func numbersAreWrittenWithoutLeadingZeros(_ sent: String, _ written: String) throws {
        #expect(
            try rewritten("POST / HTTP/1.1\r\nHost: a\r\ncontent-length:\(sent)\r\nA: b\r\n\r\n", via: nil)
                == """
                POST / HTTP/1.1\r\nHost: \
                a\r\n\(sent == written ? "content-length:" : "Content-Length: ")\(written)\r\nA: b\r\n\r\n
                """
        )
        for method in [PinproxyHTTPWire.Method.get, .head] {
            #expect(
                try rewritten(response: "HTTP/1.1 200 O\r\nContent-Length: \(sent)\r\n\r\n", via: nil, to: method)
                    == "HTTP/1.1 200 O\r\nContent-Length: \(written)\r\n\r\n")
        }
        #expect(
            try rewritten(response: "HTTP/1.1 204 \r\nContent-Length: \(sent)\r\n\r\n", via: nil)
                == "HTTP/1.1 204 \r\n\r\n")
    }

    @Test(arguments: [
        "Content-Length: 5\r\nX: 1\r\nContent-Length: 5\r\n", "Content-Length: 5, 5\r\nX: 1\r\n",
        "Content-Length: 5 ,\t5,5\r\nX: 1\r\n",
        "Content-Length: 05, 05\r\nX: 1\r\nContent-Length: 05\r\n",
    ])
    func aLengthIsWrittenOnce(_ fields: String) throws {
        #expect(
            try rewritten("POST / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n", via: nil)
                == "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX: 1\r\n\r\n")
        #expect(
            try rewritten(response: "HTTP/1.1 200 O\r\n\(fields)\r\n", via: nil)
                == "HTTP/1.1 200 O\r\nContent-Length: 5\r\nX: 1\r\n\r\n")
    }

    /// A client without a rule for 205 gets a length anyway.
    @Test(arguments: ["", "Content-Length: 0\r\n", "Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n"])
    func aResetHasNoContent(_ fields: String) throws {
        #expect(
            try rewritten(response: "HTTP/1.1 205 R\r\nA: b\r\n\(fields)\r\n", via: nil)
                == "HTTP/1.1 205 R\r\nA: b\r\nContent-Length: 0\r\n\r\n")
    }

    @Test(arguments: [("1", "0"), ("010", "9"), ("2147483648", "2147483647"), ("99999999999999999999", "2147483647")])
    func forwardsAreCountedDown(_ sent: String, _ written: String) throws {
        for method in ["OPTIONS", "TRACE"] {
            #expect(
                try rewritten("\(method) / HTTP/1.1\r\nHost: a\r\nMax-Forwards: \(sent)\r\nA: b\r\n\r\n", via: nil)
                    == "\(method) / HTTP/1.1\r\nHost: a\r\nMax-Forwards: \(written)\r\nA: b\r\n\r\n")
        }
        let get = "GET / HTTP/1.1\r\nHost: a\r\nMax-Forwards: \(sent)\r\n\r\n"
        #expect(try rewritten(get, via: nil) == get)
    }

    @Test func aReflectionHoldsNoSecrets() throws {
        let text =
            """
            TRACE /x?y HTTP/1.1\r\nHost: a\r\nCookie: c\r\nVia: 1.1 b\r\nauthorization: d\r\nProxy-Authorization: \
            e\r\nX: f\r\n\r\n
            """
        let head = try #require(request(text).head)
        var out: [UInt8] = []
        HeadWriter.reflect(request: head, from: Array(text.utf8).span, into: &out)
        #expect(String(decoding: out, as: UTF8.self) == "TRACE /x?y HTTP/1.1\r\nHost: a\r\nVia: 1.1 b\r\nX: f\r\n\r\n")
    }

    /// RFC 9209: a server that signs with this proxy's name forges a refusal.
    @Test(arguments: [
        ("cdn; error=x", "cdn; error=x"), ("pinproxy; error=x", nil), ("\"pinproxy\"", nil), ("PinProxy", nil),
        ("a , pinproxy;details=\"b, c\" ,d", "a, d"),
        ("a; details=\"x, pinproxy; error=y\"", "a; details=\"x, pinproxy; error=y\""),
        ("a; details=\"\\\", pinproxy; error=y\"", "a; details=\"\\\", pinproxy; error=y\""),
        ("pinproxy.example", "pinproxy.example"),
        ("\"pinproxy x\";a", "\"pinproxy x\";a"), ("a;b=pinproxy", "a;b=pinproxy"), ("*a/b:c", "*a/b:c"),
        // No lists: a reader that splits them differently must not find this proxy in them.
        ("a; details=\"x, pinproxy", nil), ("x\", pinproxy", nil), ("\"pin\\proxy\"", nil), ("pinproxy error=x", nil),
        ("a,,b", nil),
        ("a,", nil), ("", nil), ("(pinproxy)", nil), ("a;d=%\"x\\\", pinproxy; e=\"\"", nil), ("\"pinproxy\"x", nil),
        ("a\u{80}", nil),
    ])
    func nobodyElseSpeaksForThisProxy(_ value: String, _ kept: String?) throws {
        #expect(
            try rewritten(response: "HTTP/1.1 200 O\r\nProxy-Status: \(value)\r\nA: b\r\n\r\n", via: nil)
                == "HTTP/1.1 200 O\r\n\(kept.map { "Proxy-Status: \($0)\r\n" } ?? "")A: b\r\n\r\n")
    }

    @Test func upgradesAndTrailersAreAskedForAnew() throws {
        let text =
            """
            GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade, TE\r\nUpgrade: websocket\r\nTE: deflate, \
            Trailers\r\n\r\n
            """
        #expect(
            try rewritten(text, via: nil)
                == "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nTE: trailers\r\nConnection: Upgrade, TE\r\n\r\n")
        #expect(
            try rewritten(text, via: nil, forwardUpgrade: false)
                == "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n")
    }

    @Test func responsesAreRewrittenToo() throws {
        let text =
            """
            HTTP/1.0 200 Fine  by me\r\nServer: s\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: \
            x\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: \
            3\r\n\r\n
            """
        let kept = "HTTP/1.1 200 Fine  by me\r\nServer: s\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 3\r\n"
        #expect(try rewritten(response: text) == kept + "Via: 1.0 pinproxy-0123456789abcdef\r\n\r\n")
        #expect(try rewritten(response: text, connection: .close, via: nil) == kept + "Connection: close\r\n\r\n")
        #expect(
            try rewritten(response: text, clientVersion: .http10, via: nil) == kept + "Connection: keep-alive\r\n\r\n")
    }

    @Test func framingFieldsFitTheFraming() throws {
        let chunked = "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
        #expect(
            try rewritten(response: chunked, inChunks: true, via: nil)
                == "HTTP/1.1 200 \r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n")
        #expect(
            try rewritten(
                response: chunked, clientVersion: .http10, connection: .close, via: nil)
                == "HTTP/1.1 200 \r\nConnection: close\r\n\r\n")
        #expect(
            try rewritten(response: "HTTP/1.0 200 \r\nServer: s\r\n\r\n", inChunks: true, via: nil)
                == "HTTP/1.1 200 \r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n")
        #expect(
            try rewritten(response: "HTTP/1.1 204 \r\nContent-Length: 0\r\n\r\n", via: nil) == "HTTP/1.1 204 \r\n\r\n")
        let head = "HTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n"
        #expect(try rewritten(response: head, via: nil) == head)
    }

    @Test func upgradesOfResponsesPass() throws {
        #expect(
            try rewritten(
                response: "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", connection: .upgrade,
                via: nil)
                == "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        #expect(
            try rewritten(response: "HTTP/1.1 426 U\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n", via: nil)
                == "HTTP/1.1 426 U\r\nUpgrade: websocket\r\nContent-Length: 0\r\nConnection: Upgrade\r\n\r\n")
        #expect(
            try rewritten(response: "HTTP/1.1 100 C\r\n\r\n", connection: .close, via: nil) == "HTTP/1.1 100 C\r\n\r\n")
    }

    @Test func whatIsWrittenCanBeRead() throws {
        let text =
            "GET http://a.test/ HTTP/1.1\r\nHost: b\r\nVia: 1.1 x\r\nConnection: q\r\nQ: 1\r\nTE: trailers\r\n\r\n"
        let once = try rewritten(text)
        #expect(request(once).head?.bodyLength == BodyLength.none)
        #expect(request(once).head.map { Int($0.length) } == once.utf8.count)
    }
}

extension ViaPseudonym {
    fileprivate static let test = ViaPseudonym(token: 0x0123_4567_89ab_cdef)
}
