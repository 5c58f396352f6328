import PinproxyHTTPWire
import Testing

/// Messages known to be read differently by two parsers: each must be refused, for the reason beside it.
@Suite struct SmugglingTests {
    @Test(arguments: [
        // Framing.
        ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", WireError.Code.contentLengthWithTransferEncoding),
        ("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", .contentLengthWithTransferEncoding),
        ("Content-Length: 3\r\nContent-Length: 4\r\n", .repeatedContentLength),
        ("Content-Length: 3\r\nX: 1\r\nContent-Length: 3, 4\r\n", .repeatedContentLength),
        ("Content-Length: 3, 4\r\n", .repeatedContentLength),
        ("Content-Length: 3, 3, 30\r\n", .repeatedContentLength),
        ("Content-Length: 3, 03\r\n", .repeatedContentLength),
        ("Content-Length: 3,\r\n", .invalidContentLength),
        ("Content-Length: ,3\r\n", .invalidContentLength),
        ("Content-Length: 3,,3\r\n", .invalidContentLength),
        ("Content-Length: 3; 3\r\n", .invalidContentLength),
        ("Content-Length: 3\r\nContent-Length: \r\n", .invalidContentLength),
        ("Content-Length: 3, 3\r\nTransfer-Encoding: chunked\r\n", .contentLengthWithTransferEncoding),
        ("Content-Length: +3\r\n", .invalidContentLength),
        ("Content-Length: -3\r\n", .invalidContentLength),
        ("Content-Length: 0x3\r\n", .invalidContentLength),
        ("Content-Length: 3 4\r\n", .invalidContentLength),
        ("Content-Length: 3_0\r\n", .invalidContentLength),
        ("Content-Length: 3.0\r\n", .invalidContentLength),
        ("Content-Length: \"3\"\r\n", .invalidContentLength),
        ("Content-Length: \u{0663}\r\n", .invalidContentLength),
        ("Content-Length:\r\n", .invalidContentLength),
        ("Content-Length: 9223372036854775808\r\n", .invalidContentLength),
        ("Content-Length: 18446744073709551616\r\n", .invalidContentLength),
        ("Content-Length: 99999999999999999999999999\r\n", .invalidContentLength),
        ("Transfer-Encoding: xchunked\r\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding: chunkedx\r\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding: identity\r\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding: gzip, chunked\r\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding: chunked, identity\r\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding: chunked, chunked\r\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding: chunked;q=1\r\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding: \"chunked\"\r\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding: \u{00A0}chunked\r\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding:\r\n", .unsupportedTransferEncoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", .repeatedTransferEncoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", .repeatedTransferEncoding),
        ("Transfer-Encoding: \u{0B}chunked\r\n", .controlCharacter),
        // Field lines.
        ("Content-Length : 3\r\n", .spaceBeforeColon),
        ("Transfer-Encoding\t: chunked\r\n", .spaceBeforeColon),
        (" Content-Length: 3\r\n", .foldedLine),
        ("X: 1\r\n Content-Length: 3\r\n", .foldedLine),
        ("X: 1\r\n\tfolded\r\n", .foldedLine),
        (": x\r\n", .emptyFieldName),
        ("Content-Length\r\n", .missingColon),
        ("Content(Length): 3\r\n", .fieldName),
        ("Content-Length\u{0}: 3\r\n", .controlCharacter),
        ("X\u{00E9}: 3\r\n", .fieldName),
        ("\"X\": 3\r\n", .fieldName),
        ("X: a\u{0}b\r\n", .controlCharacter),
        ("X: a\u{7F}b\r\n", .controlCharacter),
        ("X: a\u{1B}[2J\r\n", .controlCharacter),
        ("X: 1\nContent-Length: 3\r\n", .bareLineFeed),
        ("X: 1\rContent-Length: 3\r\n", .bareCarriageReturn),
        ("X: 1\r\r\nContent-Length: 3\r\n", .bareCarriageReturn),
        ("X: 1\r\n\n", .bareLineFeed),
        // Routing.
        ("Host: b\r\n", .repeatedHost),
        ("hOST: a\r\n", .repeatedHost),
        (
            "Connection: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,1,2,3,4,5,6,7\r\n",
            .tooManyConnectionOptions
        ),
    ])
    func fieldsThatSmuggleAreRefused(_ fields: String, _ defect: WireError.Code) {
        #expect(request("POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n").defect == defect)
        guard defect != .repeatedHost else { return }
        #expect(response("HTTP/1.1 200 OK\r\n" + fields + "\r\n").defect == defect)
    }

    @Test(arguments: [
        ("GET  / HTTP/1.1", WireError.Code.requestLine), ("GET / HTTP/1.1 ", .version), (" GET / HTTP/1.1", .method),
        ("GET /a b HTTP/1.1", .version), ("GET /", .requestLine), ("GET", .method), ("GET ", .requestLine),
        ("GET\t/ HTTP/1.1", .method), ("GET /\tHTTP/1.1", .requestLine), ("G@T / HTTP/1.1", .method),
        ("GET / http/1.1", .version), ("GET / HTTP/1.10", .version), ("GET / HTTP/01.1", .version),
        ("GET / HTTP/1,1", .version), ("GET / HTTP/+1.1", .version), ("GET / HTTP/11", .version),
        ("GET / HTTP/2.0", .unsupportedVersion), ("GET / HTTP/0.9", .unsupportedVersion),
        ("PRI * HTTP/2.0", .unsupportedVersion), ("GET / ", .version), ("GET * HTTP/1.1", .target),
        ("GET a HTTP/1.1", .target), ("GET a:80 HTTP/1.1", .target), ("GET http:/a HTTP/1.1", .target),
        ("GET http:// HTTP/1.1", .target), ("GET http:///x HTTP/1.1", .target), ("GET ://a/ HTTP/1.1", .target),
        ("GET 1http://a/ HTTP/1.1", .target), ("GET /a#b HTTP/1.1", .fragmentInTarget),
        ("GET http://a#@b/ HTTP/1.1", .fragmentInTarget), ("GET /\u{0} HTTP/1.1", .controlCharacter),
        ("GET / HTTP/1.1\rX", .bareCarriageReturn), ("GET / HTTP/1.1\nHost: b", .bareLineFeed),
        ("\u{16}\u{03}\u{01}", .controlCharacter),
    ])
    func requestLinesAreStrict(_ line: String, _ defect: WireError.Code) {
        #expect(request(line + "\r\nHost: a\r\n\r\n").defect == defect)
    }

    @Test(arguments: [
        "a b", "a,b", "a/b", "a@b", "a?b", "a\\b", "a#b", "\"a\"", "a<b>", "a|b", "a\u{00E9}", "a\tb",
    ])
    func hostsWithOddCharactersAreRefused(_ host: String) {
        #expect(request("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n").defect == .invalidHost)
    }

    /// The search for a line's end takes several bytes at once, so every octet is tried at every position.
    @Test func everyOctetIsJudgedInEveryPlace() {
        let start = Array("GET / HTTP/1.1\r\nHost: a\r\nX: ".utf8)
        for octet in UInt8.min...UInt8.max {
            let defect: WireError.Code? =
                switch octet {
                case 0x0A: .bareLineFeed
                case 0x0D: .bareCarriageReturn
                case 0x09, 0x20...0x7E, 0x80...: nil
                default: .controlCharacter
                }
            for place in 0..<24 {
                // Neighbours that a sloppy word-at-a-time test would carry into.
                var value = [UInt8](repeating: [0x20, 0x7E, 0x80, 0xFF, 0x61][place % 5], count: 24)
                value[place] = octet
                let bytes = start + value + Array("\r\n\r\n".utf8)
                var parser = HeadParser(limit: 1000)
                var head = RequestHead()
                let outcome = Parsed(parser.parseRequest(bytes.span, into: &head), head, parser.framing)
                #expect(outcome.defect == defect && (outcome.head != nil) == (defect == nil), "\(octet) at \(place)")
            }
        }
    }

    @Test func requestsNeedAHostFrom11On() {
        #expect(request("GET / HTTP/1.1\r\n\r\n").defect == .missingHost)
        #expect(request("GET http://a/ HTTP/1.1\r\n\r\n").defect == .missingHost)
        #expect(request("CONNECT a:443 HTTP/1.1\r\n\r\n").defect == nil)
        #expect(request("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nHost: b:443\r\n\r\n").defect == .repeatedHost)
        #expect(request("GET / HTTP/1.0\r\n\r\n").head != nil)
        #expect(request("GET / HTTP/1.1\r\nHost:\r\n\r\n").head?.host?.isEmpty == true)
    }

    @Test func http10HasNoTransferEncoding() {
        let field = "Transfer-Encoding: chunked\r\n\r\n"
        #expect(request("POST / HTTP/1.0\r\n" + field).defect == .transferEncodingBeforeHTTP11)
        #expect(response("HTTP/1.0 200 OK\r\n" + field).defect == .transferEncodingBeforeHTTP11)
    }

    @Test(arguments: ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"])
    func connectHasNoBody(_ field: String) {
        #expect(request("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\(field)\r\n").defect == .connectWithBody)
    }

    @Test func controlCharactersAreNoticedBeforeTheLineEnds() {
        #expect(request("\u{16}").defect == .controlCharacter)
        #expect(request("GET /\u{0}").defect == .controlCharacter)
        #expect(request("\n").defect == .bareLineFeed)
    }

    @Test(arguments: 0..<300)
    func nothingThatIsThrownAtItCrashes(_ seed: Int) {
        var random = Seeded(UInt64(seed))
        let seeds = [
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: x\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ]
        var bytes = Array(seeds[seed % 2].utf8)
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            let place = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
            default: bytes.removeSubrange(place..<min(bytes.count, place + 5))
            }
            if bytes.isEmpty { bytes = [13] }
        }
        var parser = HeadParser(limit: 4096)
        var head = RequestHead()
        if case .complete = parser.parseRequest(bytes.span, into: &head) {
            #expect(Int(head.length) <= bytes.count)
            #expect(head.fields.allSatisfy { $0.line.end <= Int(head.length) })
        }
        parser.reset()
        var answer = ResponseHead()
        if case .complete = parser.parseResponse(bytes.span, to: .get, into: &answer) {
            #expect(Int(answer.length) <= bytes.count)
        }
    }
}
