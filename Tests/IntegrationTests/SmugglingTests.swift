import Foundation
import Testing

/// Messages that two readers could interpret differently (RFC 9112 section 11).
struct Smuggled: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The request, `HOST` standing for the authority and `TARGET` for the request target's beginning.
    let message: String

    init(_ description: String, _ message: String) {
        (testDescription, self.message) = (description, message)
    }

    private static func post(_ description: String, _ fields: String, _ body: String) -> Smuggled {
        Smuggled(description, "POST TARGET/outer HTTP/1.1\r\nHost: HOST\r\n\(fields)\r\n\(body)")
    }

    private static func get(_ description: String, _ fields: String) -> Smuggled {
        Smuggled(description, "GET TARGET/outer HTTP/1.1\r\nHost: HOST\r\n\(fields)\r\n")
    }

    private static let inner = "GET /smuggled HTTP/1.1\r\nHost: HOST\r\n\r\n"

    static let requests: [Smuggled] = [
        post("length and chunked", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n\(inner)"),
        post("chunked and length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n\(inner)"),
        post("two lengths", "Content-Length: 0\r\nContent-Length: 43\r\n", inner),
        post("a list of two lengths", "Content-Length: 0, 43\r\n", inner),
        post("a signed length", "Content-Length: +0\r\n", inner),
        post("a negative length", "Content-Length: -1\r\n", inner),
        post("a hexadecimal length", "Content-Length: 0x0\r\n", inner),
        post("an empty length", "Content-Length:\r\n", inner),
        post("a length beyond 64 bits", "Content-Length: 18446744073709551616\r\n", inner),
        post("an unknown coding", "Transfer-Encoding: xchunked\r\n", "0\r\n\r\n\(inner)"),
        post("chunked not last", "Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n\(inner)"),
        post("chunked twice", "Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n\(inner)"),
        post("chunked in quotes", "Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n\(inner)"),
        post("chunked behind a vertical tab", "Transfer-Encoding: \u{0b}chunked\r\n", "0\r\n\r\n\(inner)"),
        post("a space before the colon", "Transfer-Encoding : chunked\r\n", "0\r\n\r\n\(inner)"),
        post("a chunk size that overflows", "Transfer-Encoding: chunked\r\n", "10000000000000000\r\n\(inner)"),
        post("a negative chunk size", "Transfer-Encoding: chunked\r\n", "-1\r\n\(inner)"),
        post("a chunk size with 0x", "Transfer-Encoding: chunked\r\n", "0x1\r\na\r\n0\r\n\r\n\(inner)"),
        post("a chunk without its end", "Transfer-Encoding: chunked\r\n", "1\r\naXX\r\n0\r\n\r\n\(inner)"),
        post("a chunk line with a bare LF", "Transfer-Encoding: chunked\r\n", "1;x\na\r\n0\r\n\r\n\(inner)"),
        get("a space in a field name", "X Field: a\r\n"),
        get("an empty field name", ": a\r\n"),
        get("a line without a colon", "nonsense\r\n"),
        get("obsolete folding", "X-Field: a\r\n b\r\n"),
        get("NUL in a value", "X-Field: a\0b\r\n"),
        get("a bare CR in a value", "X-Field: a\rb\r\n"),
        get("a bare LF at a line's end", "X-Field: a\nX-Other: b\r\n"),
        get("two hosts", "Host: other.test\r\n"),
        Smuggled("a space before the first field", "GET TARGET/outer HTTP/1.1\r\n X-Field: a\r\nHost: HOST\r\n\r\n"),
        Smuggled("no host", "GET TARGET/outer HTTP/1.1\r\nX-Field: a\r\n\r\n"),
        Smuggled("two spaces in the request line", "GET  TARGET/outer HTTP/1.1\r\nHost: HOST\r\n\r\n"),
        Smuggled("a tab in the request line", "GET\tTARGET/outer HTTP/1.1\r\nHost: HOST\r\n\r\n"),
        Smuggled("a space in the target", "GET TARGET/outer x HTTP/1.1\r\nHost: HOST\r\n\r\n"),
        Smuggled("HTTP/1.10", "GET TARGET/outer HTTP/1.10\r\nHost: HOST\r\n\r\n"),
        Smuggled("HTTP/0.9", "GET TARGET/outer\r\n\r\n"),
        Smuggled("a method that is no token", "GE(T TARGET/outer HTTP/1.1\r\nHost: HOST\r\n\r\n"),
    ]

    private static func answer(_ description: String, _ fields: String, _ body: String = "") -> Smuggled {
        Smuggled(description, "HTTP/1.1 200 OK\r\n\(fields)\r\n\(body)")
    }

    static let responses: [Smuggled] = [
        answer("length and chunked", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        answer("two lengths", "Content-Length: 0\r\nContent-Length: 3\r\n", "abc"),
        answer("an odd length", "Content-Length: 3x\r\n", "abc"),
        answer("an unknown coding", "Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        answer("obsolete folding", "Content-Length: 3\r\nX-Field: a\r\n b\r\n", "abc"),
        answer("a space before the colon", "Content-Length : 3\r\n", "abc"),
        answer("NUL in a value", "Content-Length: 3\r\nX-Field: a\0b\r\n", "abc"),
        answer("a bare CR in a value", "Content-Length: 3\r\nX-Field: a\rb\r\n", "abc"),
        Smuggled("a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 3\r\n\r\nabc"),
        Smuggled("no status", "HTTP/1.1 OK\r\nContent-Length: 3\r\n\r\nabc"),
        Smuggled("another protocol", "HTTP/3.0 200 OK\r\nContent-Length: 3\r\n\r\nabc"),
        Smuggled("no HTTP at all", "SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        Smuggled(
            "switching protocols unasked",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    ]
}

@Suite(.sharedBed(OriginBed.prepare), .timeLimit(.minutes(5)))
struct SmugglingTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    @Test(arguments: Smuggled.requests)
    func aRequestIsRefusedWithinTLS(_ request: Smuggled) async throws {
        let message = request.message.replacingOccurrences(of: "HOST", with: shared.authority)
            .replacingOccurrences(of: "TARGET", with: "")
        let run = try await shared.bed.secureExchange(via: shared.proxy, to: shared.authority, message)
        #expect(run.ending != .exited(124), "not closed: \(run)")
        #expect(run.output.hasPrefix("HTTP/1.1 400 "), "\(run)")
        #expect(run.output.count(of: "HTTP/1.1 ") == 1, "\(run)")
        try expectNothingSmuggled()
    }

    @Test(arguments: Smuggled.requests)
    func aPlainRequestIsRefused(_ request: Smuggled) async throws {
        let authority = "\(OriginBed.name):\(shared.secondOriginPort)"
        let message = request.message.replacingOccurrences(of: "HOST", with: authority)
            .replacingOccurrences(of: "TARGET", with: "http://\(authority)")
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send(message)
        let answer = String(decoding: try await connection.receiveAll(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 400 "), "\(answer)")
        #expect(answer.count(of: "HTTP/1.1 ") == 1, "\(answer)")
        try expectNothingSmuggled()
    }

    @Test(arguments: Smuggled.responses)
    func aResponseIsRefused(_ response: Smuggled) async throws {
        let encoded = Data(response.message.utf8).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
        let run = try await shared.curl("-i", shared.url + "/raw/" + encoded)
        #expect(run.output.hasPrefix("HTTP/1.1 502 "), "\(run)")
        #expect(run.output.lowercased().contains("proxy-status: pinproxy; error="), "\(run)")
        #expect(!run.output.contains("\nabc"), "\(run)")
    }

    /// A field named by Connection is for this hop, except one that frames or addresses the message.
    @Test func connectionNamesNothingEssential() async throws {
        let run = try await shared.bed.secureExchange(
            via: shared.proxy, to: shared.authority,
            "POST /echo HTTP/1.1\r\nHost: \(shared.authority)\r\nConnection: close, content-length, host\r\n"
                + "Content-Length: 5\r\n\r\nhello")
        if run.output.hasPrefix("HTTP/1.1 200 ") {
            #expect(run.output.contains("\"length\": 5"), "\(run)")
        } else {
            #expect(run.output.hasPrefix("HTTP/1.1 400 "), "\(run)")
        }
    }

    private func expectNothingSmuggled() throws {
        for origin in [shared.origin, shared.plainOrigin].compactMap({ $0 }) {
            #expect(!origin.events.all("request").contains { $0["target"] == "/smuggled" })
        }
    }
}

extension String {
    func count(of part: String) -> Int {
        components(separatedBy: part).count - 1
    }
}
