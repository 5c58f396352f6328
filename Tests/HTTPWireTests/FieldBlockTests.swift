import PinproxyHTTPWire
import Testing

/// Outgoing HTTP/2 heads and trailers.
@Suite struct FieldBlockTests {
    private let via = ViaPseudonym(token: 1)

    private func shown(_ block: FieldBlock) -> [String] {
        block.fields.map { "\($0.name.text(in: block.bytes.span)): \($0.value.text(in: block.bytes.span))" }
    }

    private func secrets(_ block: FieldBlock) -> [String] {
        block.fields.filter(\.isNeverIndexed).map { $0.name.text(in: block.bytes.span) }
    }

    private func request(
        _ text: String, to authority: String = "a.test", named via: ViaPseudonym? = nil, connectProtocol: String? = nil,
        neverIndexed: Bool = false, edits: HeadEdits = HeadEdits()
    ) throws -> FieldBlock {
        let owned = try OwnedRequest(Array(text.utf8))
        let authority = try Authority.parse(authority, defaultPort: 443).get()
        var block = FieldBlock()
        block.append("left", "over")
        HeadWriter.write(
            request: owned.view.head, from: owned.message.span, authority: authority, defaultPort: 443, via: via,
            connectProtocol: connectProtocol, neverIndexed: neverIndexed, edits: edits, into: &block)
        return block
    }

    private func response(
        _ text: String, named via: ViaPseudonym? = nil, edits: HeadEdits = HeadEdits()
    ) throws
        -> FieldBlock
    {
        let owned = try OwnedResponse(Array(text.utf8))
        var block = FieldBlock()
        HeadWriter.write(response: owned.view.head, from: Array(text.utf8).span, via: via, edits: edits, into: &block)
        return block
    }

    @Test func aRequestHasItsPseudoHeaderFieldsFirstAndNamesInLowerCase() throws {
        let block = try request(
            "GET /a?b HTTP/1.1\r\nHost: A.test:443\r\nUser-Agent: x \r\nX-Empty:\r\nAccept: */*\r\n\r\n", named: via)
        #expect(
            shown(block) == [
                ":method: GET", ":scheme: https", ":authority: a.test", ":path: /a?b", "user-agent: x", "x-empty: ",
                "accept: */*", "via: 1.1 \(via)",
            ])
        #expect(secrets(block).isEmpty)
    }

    @Test func theAuthorityHasItsPortUnlessItIsTheUsualOne() throws {
        for (authority, text) in [
            ("a.test", "a.test"), ("a.test:8443", "a.test:8443"), ("[2001:db8::1]", "[2001:db8::1]"),
            ("[::1]:1", "[::1]:1"),
        ] {
            #expect(
                shown(try request("GET / HTTP/1.1\r\nHost: x\r\n\r\n", to: authority)).contains(":authority: \(text)"))
        }
    }

    @Test func aURLBecomesAPathAndThatOfOPTIONSAnAsterisk() throws {
        #expect(shown(try request("GET http://a.test?q HTTP/1.1\r\nHost: b.test\r\n\r\n"))[3] == ":path: /?q")
        #expect(shown(try request("OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n"))[3] == ":path: *")
        #expect(shown(try request("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n"))[3] == ":path: *")
    }

    @Test func whatBelongsToAConnectionOfHTTP11StaysBehind() throws {
        let block = try request(
            """
            POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close, X-Hop, Upgrade\r\nX-Hop: 1\r\nKeep-Alive: \
            5\r\nTransfer-Encoding: chunked\r\n
            """
                + "Proxy-Connection: x\r\nProxy-Authorization: Basic x\r\nUpgrade: websocket\r\nHTTP2-Settings: "
                + "x\r\nTE: trailers, gzip\r\n"
                + "Expect: 100-continue\r\nTrailer: X-Sum\r\n\r\n")
        #expect(shown(block).dropFirst(4) == ["expect: 100-continue", "trailer: X-Sum", "te: trailers"])
    }

    @Test func aLengthIsWrittenOnceAsItIsUnderstood() throws {
        let block = try request(
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 05, 05\r\nContent-Length: 05\r\nX: y\r\n\r\n")
        #expect(shown(block).dropFirst(4) == ["content-length: 5", "x: y"])
    }

    @Test func cookiesAreSplit() throws {
        let block = try request(
            "GET / HTTP/1.1\r\nHost: a.test\r\nCookie: a=1; b=2;c=3; \r\nCookie: d\r\nX-Cookie: e; f\r\n\r\n")
        #expect(shown(block).dropFirst(4) == ["cookie: a=1", "cookie: b=2;c=3;", "cookie: d", "x-cookie: e; f"])
        #expect(secrets(block) == ["cookie", "cookie", "cookie"])
    }

    @Test func secretsAreNeverIndexedAndNothingIsWhereThatWasAskedFor() throws {
        let text = "GET / HTTP/1.1\r\nHost: a.test\r\nAuthorization: Basic x\r\nX-Api-Key: y\r\n\r\n"
        #expect(secrets(try request(text)) == ["authorization"])
        #expect(secrets(try request(text, neverIndexed: true)) == ["authorization", "x-api-key"])
        #expect(secrets(try response("HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nX: y\r\n\r\n")) == ["set-cookie"])
    }

    @Test func editsAreAppliedThoseOfTheConnectionDropped() throws {
        var edits = HeadEdits()
        for name in [
            "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "TE", "Host",
            "HTTP2-Settings",
        ] {
            edits.append(.set("x"), name)
        }
        edits.append(.set("Bearer z"), "Authorization")
        edits.append(.remove, "X-Gone")
        edits.append(.addIfAbsent("new"), "X-New")
        let block = try request(
            "GET / HTTP/1.1\r\nHost: a.test\r\nX-Gone: 1\r\nAuthorization: old\r\n\r\n", edits: edits)
        #expect(shown(block).dropFirst(4) == ["authorization: Bearer z", "x-new: new"])
        #expect(secrets(block) == ["authorization"])
        #expect(
            shown(try response("HTTP/1.1 200 OK\r\nX-Gone: 1\r\n\r\n", edits: edits)) == [
                ":status: 200", "authorization: Bearer z", "x-new: new",
            ])
    }

    @Test func aTunnelHasAnAuthorityWithItsPortAndNothingElse() throws {
        #expect(
            shown(try request("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nX: y\r\n\r\n")) == [
                ":method: CONNECT", ":authority: a.test:443", "x: y",
            ])
    }

    @Test func aHandshakeBecomesAnExtendedCONNECT() throws {
        let block = try request(
            """
            GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n
            """
                + "Sec-WebSocket-Version: 13\r\n\r\n", connectProtocol: "websocket")
        #expect(
            shown(block) == [
                ":method: CONNECT", ":protocol: websocket", ":scheme: https", ":authority: a.test", ":path: /chat",
                "sec-websocket-version: 13",
            ])
        #expect(
            shown(
                try response(
                    """
                    HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: \
                    websocket\r\nSec-WebSocket-Accept: k\r\nSec-WebSocket-Protocol: p\r\n\r\n
                    """
                ))
                == [":status: 200", "sec-websocket-protocol: p"])
    }

    @Test func aResponseHasAStatusNoReasonAndNoFramingOfHTTP11() throws {
        #expect(
            shown(
                try response(
                    """
                    HTTP/1.1 404 Not Found\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Type: \
                    a/b\r\n\r\n
                    """,
                    named: via)) == [
                    ":status: 404", "content-type: a/b", "via: 1.1 \(via)",
                ])
        #expect(
            shown(try response("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", named: via)) == [
                ":status: 200", "content-length: 5", "via: 1.0 \(via)",
            ])
        #expect(
            shown(try response("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 5\r\n\r\n")) == [
                ":status: 103", "link: </a>",
            ])
        #expect(
            shown(
                try response(
                    "HTTP/1.1 426 Upgrade Required\r\nUpgrade: x\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n"))
                == [":status: 426", "content-length: 0"])
    }

    @Test func membersOfProxyStatusInThisProxysNameStayBehind() throws {
        #expect(
            shown(try response("HTTP/1.1 200 OK\r\nProxy-Status: a, pinproxy; error=x, b\r\n\r\n")).dropFirst() == [
                "proxy-status: a, b"
            ])
        #expect(shown(try response("HTTP/1.1 200 OK\r\nProxy-Status: pinproxy\r\n\r\n")).count == 1)
    }

    @Test func maxForwardsIsCountedDown() throws {
        #expect(
            shown(try request("OPTIONS / HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 3\r\n\r\n")).last
                == "max-forwards: 2")
    }

    @Test func trailersGoAsTheyMay() {
        let section = TrailerSection(Array("Grpc-Status: 0\r\nContent-Length: 5\r\nETag: \"x\"\r\nX-A:\r\n".utf8).span)
        var block = FieldBlock()
        HeadWriter.write(trailers: section, into: &block)
        #expect(shown(block) == ["grpc-status: 0", "etag: \"x\"", "x-a: "])
        HeadWriter.write(trailers: TrailerSection([UInt8]().span), into: &block)
        #expect(block.fields.isEmpty)
    }
}
