import PinproxyHTTP2
import PinproxyHTTPWire
import Testing

/// Heads for smuggling and confusion (RFC 9113 sections 8.1.1 to 8.3 and 10.3). None may be delivered as a head.
@Suite struct MalformedHeadTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let what: String
        let fields: [(String, String)]
        var testDescription: String { what }
    }

    private static func with(_ more: (String, String)...) -> [(String, String)] { Raw.get + more }
    private static func replacing(_ name: String, _ value: String) -> [(String, String)] {
        Raw.get.map { $0.0 == name ? (name, value) : $0 }
    }
    private static func without(_ name: String) -> [(String, String)] { Raw.get.filter { $0.0 != name } }

    static let requests: [Case] = [
        Case(what: "a name in upper case", fields: with(("X-Upper", "1"))),
        Case(what: "a name with one capital", fields: with(("content-Length", "1"))),
        Case(what: "an empty name", fields: with(("", "x"))),
        Case(what: "a colon in a name", fields: with(("x:y", "1"))),
        Case(what: "a space in a name", fields: with(("transfer-encoding ", "chunked"))),
        Case(what: "CR LF in a name", fields: with(("x\r\ny", "1"))),
        Case(what: "NUL in a name", fields: with(("x\0", "1"))),
        Case(what: "NUL in a value", fields: with(("x", "a\0b"))),
        Case(what: "CR in a value", fields: with(("x", "a\rb"))),
        Case(what: "LF in a value", fields: with(("x", "a\nb"))),
        Case(what: "CR LF and a field in a value", fields: with(("x", "a\r\nTransfer-Encoding: chunked"))),
        Case(what: "another Host before a blank", fields: with(("host", "b.test "))),
        Case(
            what: "two different Content-Lengths, one before a blank",
            fields: with(("content-length", "0 "), ("content-length", "1"))),
        Case(what: "blanks before a coding in TE", fields: with(("te", " gzip"))),
        Case(what: "Connection", fields: with(("connection", "close"))),
        Case(what: "Keep-Alive", fields: with(("keep-alive", "timeout=5"))),
        Case(what: "Proxy-Connection", fields: with(("proxy-connection", "keep-alive"))),
        Case(what: "Transfer-Encoding", fields: with(("transfer-encoding", "chunked"))),
        Case(what: "Upgrade", fields: with(("upgrade", "h2c"))),
        Case(what: "TE with a coding", fields: with(("te", "gzip"))),
        Case(what: "TE with more than trailers", fields: with(("te", "trailers, deflate"))),
        Case(what: ":method twice", fields: with((":method", "GET"))),
        Case(what: ":path twice", fields: [(":path", "/a")] + Raw.get),
        Case(what: ":authority twice", fields: [(":authority", "a.test")] + Raw.get),
        Case(what: ":scheme twice", fields: [(":scheme", "https")] + Raw.get),
        Case(
            what: "a pseudo-header field after a regular one", fields: without(":path") + [("x", "y"), (":path", "/")]),
        Case(what: "an unknown pseudo-header field", fields: [(":version", "2")] + Raw.get),
        Case(what: ":status in a request", fields: [(":status", "200")] + Raw.get),
        Case(what: "no :method", fields: without(":method")),
        Case(what: "no :scheme", fields: without(":scheme")),
        Case(what: "no :path", fields: without(":path")),
        Case(what: "no :authority and no Host", fields: without(":authority")),
        Case(what: "an empty :path", fields: replacing(":path", "")),
        Case(what: "an empty :authority", fields: replacing(":authority", "")),
        Case(what: "an empty :method", fields: replacing(":method", "")),
        Case(what: "a :path with a space", fields: replacing(":path", "/a b")),
        Case(
            what: "a :path that ends the request line",
            fields: replacing(
                ":path",
                """
                / HTTP/1.1\r\nHost: b.test\r\nX:\u{20}
                """)),
        Case(what: "a :path with a fragment", fields: replacing(":path", "/a#b")),
        Case(what: "a :path without a slash", fields: replacing(":path", "a")),
        Case(what: "a :path in absolute form", fields: replacing(":path", "https://b.test/")),
        Case(
            what: "an absolute :path with another scheme",
            fields: [(":method", "GET"), (":scheme", "x"), (":authority", "a.test"), (":path", "http://b.test/")]),
        Case(what: "\"*\" without OPTIONS", fields: replacing(":path", "*")),
        Case(what: "a :path with NUL", fields: replacing(":path", "/a\0")),
        Case(what: "a :method with a space", fields: replacing(":method", "GET /")),
        Case(what: "a :method with CR LF", fields: replacing(":method", "GET\r\n")),
        Case(what: "a :method that isn't a token", fields: replacing(":method", "G(T")),
        Case(what: "an :authority with user information", fields: replacing(":authority", "u@a.test")),
        Case(what: "an :authority with a path", fields: replacing(":authority", "a.test/x")),
        Case(what: "an :authority with a comma", fields: replacing(":authority", "a.test,b.test")),
        Case(what: "an :authority with CR LF", fields: replacing(":authority", "a.test\r\nX: y")),
        Case(what: "an :authority with a space", fields: replacing(":authority", "a.test b.test")),
        Case(what: "a malformed :scheme", fields: replacing(":scheme", "ht tp")),
        Case(what: "another Host", fields: with(("host", "b.test"))),
        Case(what: "Host with a port that :authority lacks", fields: with(("host", "a.test:443"))),
        Case(what: "Host twice", fields: without(":authority") + [("host", "a.test"), ("host", "a.test")]),
        Case(what: "Content-Length twice", fields: with(("content-length", "0"), ("content-length", "0"))),
        Case(what: "two different Content-Lengths", fields: with(("content-length", "0"), ("content-length", "1"))),
        Case(what: "a list in Content-Length", fields: with(("content-length", "0, 0"))),
        Case(what: "a negative Content-Length", fields: with(("content-length", "-1"))),
        Case(what: "a Content-Length with a sign", fields: with(("content-length", "+0"))),
        Case(what: "a Content-Length that is too large", fields: with(("content-length", "99999999999999999999"))),
        Case(what: "a Content-Length without a body", fields: with(("content-length", "1"))),
        Case(what: "CONNECT with :path", fields: replacing(":method", "CONNECT")),
        Case(what: "CONNECT without :authority", fields: [(":method", "CONNECT")]),
        Case(what: "CONNECT with Host alone", fields: [(":method", "CONNECT"), ("host", "a.test:443")]),
        Case(
            what: "CONNECT with a length",
            fields: [(":method", "CONNECT"), (":authority", "a.test:443"), ("content-length", "5")]),
        Case(
            what: ":protocol without having been allowed",
            fields: [(":protocol", "websocket")] + replacing(":method", "CONNECT")),
    ]

    @Test(arguments: requests)
    func aMalformedRequestIsNone(_ malformed: Case) throws {
        let server = try Peer.server()
        server.receive(Raw.headers(1, malformed.fields))
        try expectRefusal(server)
        // The connection and its HPACK table stay usable.
        server.receive(Raw.request(3))
        #expect(server.received.last == .head(3, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", ends: true, body: .none))
    }

    /// RFC 9113 section 8.2.1 forbids them, programs send them, and HTTP/1.1 ignores them.
    @Test func blanksAroundAValueAreRemoved() throws {
        let server = try Peer.server()
        server.receive(
            Raw.headers(1, Self.with(("x", " \ta b\t "), ("cookie", "a=1 "), ("cookie", " b=2"), ("y", " "))))
        let head = "GET / HTTP/1.1\r\nHost: a.test\r\nx: a b\r\ny: \r\ncookie: a=1; b=2\r\n\r\n"
        #expect(server.received == [.head(1, head, ends: true, body: .none)])
    }

    static let protocols: [Case] = ["web socket", "a,b", "websocket\r\nx: y", "", "websocket, h2c", "h2c;"].map {
        name in
        Case(
            what: "the protocol \(name.debugDescription)",
            fields: [(":protocol", name)] + replacing(":method", "CONNECT"))
    }

    @Test(
        arguments: protocols + [Case(what: ":protocol without CONNECT", fields: [(":protocol", "websocket")] + Raw.get)]
    )
    func aMalformedExtendedCONNECTIsNone(_ malformed: Case) throws {
        var settings = HTTP2Settings()
        settings.enablesConnectProtocol = true
        let server = try Peer.server(settings: settings)
        server.receive(Raw.headers(1, malformed.fields))
        try expectRefusal(server)
    }

    static let responses: [Case] = [
        Case(what: "no :status", fields: [("x", "y")]),
        Case(what: ":status twice", fields: [(":status", "200"), (":status", "200")]),
        Case(what: ":status with two digits", fields: [(":status", "20")]),
        Case(what: ":status with four digits", fields: [(":status", "2000")]),
        Case(what: ":status with a letter", fields: [(":status", "2OO")]),
        Case(what: ":status below 100", fields: [(":status", "099")]),
        Case(what: ":status with CR LF", fields: [(":status", "2\r\n")]),
        Case(what: "101", fields: [(":status", "101")]),
        Case(what: "an interim head that ends the stream", fields: [(":status", "103")]),
        Case(what: ":path in a response", fields: [(":status", "200"), (":path", "/")]),
        Case(what: "Connection", fields: [(":status", "200"), ("connection", "close")]),
        Case(what: "Transfer-Encoding", fields: [(":status", "200"), ("transfer-encoding", "chunked")]),
        Case(what: "Upgrade", fields: [(":status", "200"), ("upgrade", "x")]),
        Case(
            what: "Content-Length twice",
            fields: [(":status", "200"), ("content-length", "0"), ("content-length", "0")]),
        Case(what: "Content-Length without a body", fields: [(":status", "200"), ("content-length", "3")]),
        Case(what: "CR LF in a value", fields: [(":status", "200"), ("x", "a\r\nSet-Cookie: b")]),
        Case(what: "a name in upper case", fields: [(":status", "200"), ("X", "y")]),
    ]

    @Test(arguments: responses)
    func aMalformedResponseIsNone(_ malformed: Case) throws {
        let client = try Peer.client()
        client.receive(Raw.headers(1, malformed.fields))
        try expectRefusal(client)
    }

    static let trailers: [Case] = [
        Case(what: "a pseudo-header field", fields: [(":status", "200")]),
        Case(what: "Connection", fields: [("connection", "x")]),
        Case(what: "a line end", fields: [("x", "a\r\nb: c")]),
        Case(what: "a name in upper case", fields: [("X", "y")]),
        Case(what: "Transfer-Encoding", fields: [("transfer-encoding", "chunked")]),
    ]

    @Test(arguments: trailers)
    func malformedTrailersAreNone(_ malformed: Case) throws {
        let server = try Peer.server()
        server.receive(Raw.request(1, flags: Raw.endHeaders) + Raw.data(1, "body") + Raw.headers(1, malformed.fields))
        #expect(server.received.last == .malformed(1, .field))
        #expect(!server.received.contains(.ended(1)))
    }

    @Test func aSecondHeadThatDoesntEndTheStreamIsMalformed() throws {
        let server = try Peer.server()
        server.receive(Raw.request(1, flags: Raw.endHeaders) + Raw.headers(1, [("x", "y")], flags: Raw.endHeaders))
        #expect(server.received.last == .malformed(1, .message))
        let client = try Peer.client()
        let ok = Raw.headers(1, [(":status", "200")], flags: Raw.endHeaders)
        client.receive(ok + ok)
        #expect(client.received.last == .malformed(1, .field))
    }

    /// Either the stream was reset, or the head didn't parse.
    private func expectRefusal(_ peer: Peer) throws {
        #expect(peer.received.count == 1)
        switch try #require(peer.received.first) {
        case .malformed(1, _):
            let frames = SentFrame.all(in: peer.collect())
            #expect(frames.contains { $0.kind == .reset && $0.stream == 1 && $0.code == .protocolError })
        case .refused(1, _): break
        case let other: Issue.record("\(other)")
        }
    }
}
