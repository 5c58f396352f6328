import PinproxyHTTPWire
import Testing

@Suite struct RequestHeadTests {
    @Test func aRequestIsCutIntoItsParts() throws {
        let text =
            """
            POST /a?b=c HTTP/1.1\r\nHost: api.example.test\r\nX-Empty:\r\nContent-Type: \t text/plain \
            \t\r\ncontent-LENGTH: 42\r\n\r\nbody
            """
        let parsed = request(text)
        let head = try #require(parsed.head)
        #expect(head.method == .post)
        #expect(head.methodRange.text(in: text) == "POST")
        #expect(head.target.text(in: text) == "/a?b=c")
        #expect(head.targetForm == .origin)
        #expect(head.version == .http11)
        #expect(
            parsed.framing?.body == .length(42) && parsed.framing?.keepsAlive == true && head.bodyLength == .known(42))
        #expect(head.fields.map(\.id) == [.host, .other, .contentType, .contentLength])
        #expect(head.fields.map { $0.name.text(in: text) } == ["Host", "X-Empty", "Content-Type", "content-LENGTH"])
        #expect(head.fields.map { $0.value.text(in: text) } == ["api.example.test", "", "text/plain", "42"])
        #expect(head.fields[1].line.text(in: text) == "X-Empty:\r\n")
        #expect(head.host?.text(in: text) == "api.example.test")
        #expect(Int(head.length) == text.utf8.count - 4)
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\r\nGET http://a:80/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "CONNECT a:443 HTTP/1.0\r\n\r\n",
    ])
    func everyPrefixIsIncomplete(_ text: String) {
        let bytes = Array(text.utf8)
        // Once with a new parser for each prefix, once with one that resumes.
        var resumed = HeadParser(limit: 1000)
        var resumedHead = RequestHead()
        for count in 0..<bytes.count {
            var parser = HeadParser(limit: 1000)
            var head = RequestHead()
            let prefix = bytes.span.extracting(0..<count)
            let alone = Parsed(parser.parseRequest(prefix, into: &head), head, parser.framing)
            let continued = Parsed(resumed.parseRequest(prefix, into: &resumedHead), resumedHead, resumed.framing)
            #expect(alone.isIncomplete, "\(count) bytes")
            #expect(continued.isIncomplete, "\(count) bytes, resumed")
        }
        let whole = Parsed(resumed.parseRequest(bytes.span, into: &resumedHead), resumedHead, resumed.framing)
        #expect(whole.head.map { Int($0.length) } == bytes.count)
        #expect(whole.head?.fields.count == request(text).head?.fields.count)
    }

    @Test func pipelinedRequestsAreReadOneAfterAnother() throws {
        let text = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\nVia: x\r\n\r\n"
        let bytes = Array(text.utf8)
        var parser = HeadParser(limit: 1000)
        var head = RequestHead()
        let first = try #require(Parsed(parser.parseRequest(bytes.span, into: &head), head, parser.framing).head)
        parser.reset()
        let rest = bytes.span.extracting(Int(first.length)..<bytes.count)
        let second = try #require(Parsed(parser.parseRequest(rest, into: &head), head, parser.framing).head)
        #expect(first.target.text(in: text) == "/1")
        #expect(second.target.text(in: rest) == "/2")
        #expect(second.fields.count == 2)
        #expect(Int(first.length + second.length) == bytes.count)
    }

    @Test(arguments: [
        ("GET", PinproxyHTTPWire.Method.get), ("HEAD", .head), ("POST", .post), ("PUT", .put), ("DELETE", .delete),
        ("TRACE", .trace), ("PATCH", .patch), ("OPTIONS", .options), ("get", .other), ("PROPFIND", .other),
        ("M-SEARCH", .other), ("CONNECTS", .other),
    ])
    func methodsAreCaseSensitive(_ name: String, _ method: PinproxyHTTPWire.Method) {
        #expect(request("\(name) / HTTP/1.1\r\nHost: a\r\n\r\n").head?.method == method)
    }

    @Test func safetyAndIdempotenceFollowRFC9110() {
        #expect(PinproxyHTTPWire.Method.allCases.filter(\.isSafe) == [.get, .head, .options, .trace])
        #expect(
            PinproxyHTTPWire.Method.allCases.filter(\.isIdempotent) == [.get, .head, .put, .delete, .options, .trace])
    }

    @Test func targetFormsAreTold() throws {
        #expect(request("CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n").head?.targetForm == .authority)
        #expect(request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").head?.targetForm == .asterisk)
        let text = "GET HTTPS://a.test:8443?q HTTP/1.1\r\nHost: b\r\n\r\n"
        guard case .absolute(let parts) = try #require(request(text).head).targetForm else {
            Issue.record("not absolute")
            return
        }
        #expect(parts.scheme == .https)
        #expect(parts.authority.text(in: text) == "a.test:8443")
        #expect(parts.pathAndQuery.text(in: text) == "?q")
    }

    @Test(arguments: [
        ("HTTP/1.0", HTTPVersion.http10), ("HTTP/1.1", .http11), ("HTTP/1.2", .http11), ("HTTP/1.9", .http11),
    ])
    func laterMinorVersionsCountAs11(_ text: String, _ version: HTTPVersion) {
        #expect(request("GET / \(text)\r\nHost: a\r\n\r\n").head?.version == version)
    }

    @Test(arguments: [
        ("HTTP/1.1", "", true), ("HTTP/1.1", "Connection: close\r\n", false),
        ("HTTP/1.1", "Connection: x, CLOSE\r\n", false),
        ("HTTP/1.1", "Connection: x\r\nConnection: ,close,\r\n", false),
        ("HTTP/1.0", "", false), ("HTTP/1.0", "Connection: Keep-Alive\r\n", true),
        ("HTTP/1.0", "Connection: keep-alive, close\r\n", false), ("HTTP/1.1", "Connection: closed\r\n", true),
    ])
    func persistenceFollowsVersionAndConnection(_ version: String, _ field: String, _ keepsAlive: Bool) {
        #expect(request("GET / \(version)\r\nHost: a\r\n\(field)\r\n").framing?.keepsAlive == keepsAlive)
    }

    @Test(arguments: [
        ("HTTP/1.1", "Connection: upgrade\r\nUpgrade: websocket\r\n", true),
        ("HTTP/1.1", "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n", true),
        ("HTTP/1.1", "Upgrade: websocket\r\n", false), ("HTTP/1.1", "Connection: upgrade\r\n", false),
        ("HTTP/1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n", false),
        ("HTTP/1.1", "Connection: upgrade, http2-settings\r\nUpgrade: H2C\r\nHTTP2-Settings: AAA\r\n", false),
    ])
    func upgradeNeedsBothFieldsAndIsNeverToCleartextHTTP2(_ version: String, _ fields: String, _ wants: Bool) {
        #expect(request("GET / \(version)\r\nHost: a\r\n\(fields)\r\n").head?.wantsUpgrade == wants)
    }

    @Test func expectationsCountIn11Only() {
        let fields = "Host: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n"
        #expect(request("PUT / HTTP/1.1\r\n" + fields).head?.expectsContinue == true)
        #expect(request("PUT / HTTP/1.0\r\n" + fields).head?.expectsContinue == false)
    }

    @Test func bodiesOfRequestsAreFramed() {
        let start = "POST / HTTP/1.1\r\nHost: a\r\n"
        #expect(request(start + "\r\n").framing?.body == BodyFraming.none)
        #expect(request(start + "Content-Length: 0\r\n\r\n").framing?.body == .length(0))
        #expect(
            request(start + "Content-Length: 9223372036854775807\r\n\r\n").framing?.body == .length(UInt64(Int64.max)))
        #expect(request(start + "transfer-encoding: Chunked\r\n\r\n").framing?.body == .chunked)
        #expect(request("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 0\r\n\r\n").framing?.body == .length(0))
    }

    @Test func theLimitIsExact() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        let count = text.utf8.count
        #expect(request(text, limit: count).head != nil)
        #expect(request(text + "body", limit: count).head != nil)
        #expect(request(text, limit: count - 1).isTooLarge)
        #expect(request(String(text.dropLast(1)), limit: count - 2).isTooLarge)
        #expect(request(String(repeating: "a", count: 100), limit: 100).isTooLarge)
    }

    @Test func fieldsAreLimitedInNumber() {
        let start = "GET / HTTP/1.1\r\nHost: a\r\n"
        let field = "a:\r\n"
        #expect(request(start + String(repeating: field, count: HeadParser.fieldLimit - 1) + "\r\n").head != nil)
        #expect(request(start + String(repeating: field, count: HeadParser.fieldLimit) + "\r\n").hasTooManyFields)
    }

    @Test func storageIsKeptFromOneHeadToTheNext() {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n".utf8)
        var parser = HeadParser(limit: 1000)
        var head = RequestHead()
        _ = parser.parseRequest(bytes.span, into: &head)
        let address = head.fields.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }
        for _ in 0..<3 {
            parser.reset()
            _ = parser.parseRequest(bytes.span, into: &head)
            #expect(head.fields.count == 4)
            #expect(head.fields.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) } == address)
        }
    }

    @Test func headsMayArriveInAnyPieces() {
        let text =
            """
            \r\nPOST http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nConnection: te, close, x-y\r\nTE: trailers\r\nX-Y: \
            1\r\nTransfer-Encoding: chunked\r\n\r\n
            """
        let bytes = Array(text.utf8)
        for seed in 0..<200 {
            var random = Seeded(UInt64(seed))
            var parser = HeadParser(limit: 1000)
            var head = RequestHead()
            for piece in random.pieces(of: bytes.count, longest: 30) {
                let outcome = Parsed(
                    parser.parseRequest(bytes.span.extracting(0..<piece.upperBound), into: &head), head, parser.framing)
                #expect(outcome.isIncomplete == (piece.upperBound < bytes.count), "seed \(seed)")
            }
            #expect(
                head.fields.count == 5 && parser.framing.body == .chunked && !parser.framing.keepsAlive, "seed \(seed)")
        }
    }

    @Test func everyKnownFieldNameIsFoundInAnyCase() {
        for name in FieldName.allCases
        where name != .other && name != .host && name != .contentLength
            && name != .transferEncoding
        {
            for text in [name.text, name.text.uppercased()] {
                let head = request("GET / HTTP/1.1\r\nHost: a\r\n\(text): x\r\n\r\n").head
                #expect(head?.fields.last?.id == name)
                #expect(head?.first(name) != nil)
            }
            let longer = request("GET / HTTP/1.1\r\nHost: a\r\n\(name.text)x: x\r\n\r\n").head
            #expect(longer?.fields.last?.id == .other)
        }
    }
}
