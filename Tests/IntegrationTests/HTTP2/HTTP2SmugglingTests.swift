import Foundation
import Testing

/// A request that HTTP/1.1 would read as two is refused (RFC 9113 section 10.3). The connection stays in use.
@Suite(.sharedBed(HTTP2Bed.prepare), .timeLimit(.minutes(5)))
struct HTTP2SmugglingTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    enum Outcome: Sendable, Equatable {
        /// RST_STREAM with PROTOCOL_ERROR, or a status.
        case reset
        case status(Int)
        /// The origin gets it as this line.
        case line(String)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Fields in addition to the usual pseudo-header fields, or replacing them.
        var fields: [[String]] = []
        var omitted: Set<String> = []
        var body = ""
        var method = "GET"
        var outcome = Outcome.reset
        /// Both refuse it.
        var isForOrigins = false
    }

    private static func field(_ name: String, _ value: String, _ outcome: Outcome = .reset) -> Case {
        Case(
            testDescription: "\(name.debugDescription): \(value.debugDescription)", fields: [[name, value]],
            outcome: outcome)
    }

    private static let names = [
        field("X-Upper", "a"), field("x\0nul", "a"), field("x\r\nsmuggled", "a"), field("x smuggled", "a"),
        field("x:y", "a"), field("", "a"),
        field("x\u{e9}", "a"), field("x\u{7f}", "a"), field(" x", "a"), field("x ", "a"), field("x\ty", "a"),
        field("x(y)", "a"),
        field(":unknown", "a"), field(":status", "200"),
    ]

    private static let values = [
        field("x-value", "a\r\nsmuggled: yes"), field("x-value", "a\nsmuggled: yes"),
        field("x-value", "a\rsmuggled: yes"),
        field("x-value", "a\0b"), field("x-value", "a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h1.test\r\n\r\n"),
        field("x-value", "\u{1}"), field("x-value", "\u{7f}"),
        // As in HTTP/1.1, where blanks around a value are not part of it. zypper sends one in User-Agent.
        field("x-value", " a", .line("x-value: a")), field("x-value", "a ", .line("x-value: a")),
        field("x-value", "\ta", .line("x-value: a")),
        field("x-value", "a\tb", .line("x-value: a\tb")), field("x-value", "caf\u{e9}", .line("x-value: caf\u{e9}")),
        field("x-value", "", .line("x-value:")),
    ]

    private static let connection = [
        field("connection", "close"), field("connection", "x-value"), field("keep-alive", "timeout=5"),
        field("proxy-connection", "keep-alive"),
        field("transfer-encoding", "chunked"), field("transfer-encoding", "identity"), field("upgrade", "h2c"),
        field("te", "gzip"),
        field("te", "trailers, deflate"), field("te", "trailers", .line("te: trailers")),
    ]

    private static let lengths = [
        Case(
            testDescription: "two lengths", fields: [["content-length", "5"], ["content-length", "6"]], body: "hello",
            method: "POST"),
        Case(
            testDescription: "the same length twice", fields: [["content-length", "5"], ["content-length", "5"]],
            body: "hello", method: "POST"),
        Case(
            testDescription: "a list of lengths", fields: [["content-length", "5, 5"]], body: "hello", method: "POST"),
        Case(testDescription: "a signed length", fields: [["content-length", "+5"]], body: "hello", method: "POST"),
        Case(testDescription: "a negative length", fields: [["content-length", "-5"]], body: "hello", method: "POST"),
        Case(
            testDescription: "a length in hexadecimal", fields: [["content-length", "0x5"]], body: "hello",
            method: "POST"),
        Case(
            testDescription: "a length that is too large", fields: [["content-length", "99999999999999999999"]],
            body: "hello", method: "POST"),
        Case(testDescription: "no length", fields: [["content-length", ""]], body: "hello", method: "POST"),
        Case(
            testDescription: "a length that is too short", fields: [["content-length", "3"]], body: "hello",
            method: "POST"),
        Case(
            testDescription: "a length that is too long", fields: [["content-length", "50"]], body: "hello",
            method: "POST"),
        Case(testDescription: "a length without a body", fields: [["content-length", "5"]], method: "POST"),
        Case(
            testDescription: "the right length", fields: [["content-length", "5"]], body: "hello", method: "POST",
            outcome: .line("content-length: 5")),
        Case(
            testDescription: "chunks as a body", fields: [["content-length", "42"]],
            body: "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h1.test",
            method: "POST", outcome: .line("content-length: 42")),
    ]

    private static let pseudo = [
        field(":path", "/a b"), field(":path", "/a\r\nb"), field(":path", "/a\0"), field(":path", "a", .reset),
        field(":path", ""),
        field(":path", "/a HTTP/1.1\r\nsmuggled: yes\r\n\r\nGET /smuggled"), field(":path", "/a#b", .status(400)),
        field(":path", "https://other.test/"), field(":path", "*"), field(":path", "/\u{e9}", .line("via: ")),
        field(":path", "/\t"),
        field(":method", "GET /smuggled HTTP/1.1"), field(":method", "G ET"), field(":method", ""),
        field(":method", "GET\r\n"), field(":method", "G\0ET"),
        field(":method", "CONNECT"), field(":method", "get", .line("via: ")),
        field(":scheme", "https://other.test/"), field(":scheme", "", .reset),
        field(":authority", "h1.test\r\nsmuggled: yes"),
        field(":authority", "h1.test/x"), field(":authority", "user@h1.test", .status(400)),
        field(":authority", "", .reset),
        Case(testDescription: "no :path", omitted: [":path"]),
        Case(testDescription: "no :method", omitted: [":method"]),
        Case(testDescription: "no :scheme", omitted: [":scheme"]),
        Case(testDescription: "two :path", fields: [[":path", "/a"], [":path", "/b"]]),
        Case(testDescription: "two :authority", fields: [[":authority", "h1.test"], [":authority", "other.test"]]),
        Case(
            testDescription: "a pseudo-header field after others", fields: [["x-first", "a"], [":path", "/a"]],
            omitted: [":path"]),
        Case(testDescription: ":protocol without CONNECT", fields: [[":protocol", "websocket"]]),
        Case(
            testDescription: "a host with CR LF", fields: [["host", "h1.test\r\nsmuggled: yes"]],
            omitted: [":authority"]),
    ]

    private static let groups = [
        "names": names, "values": values, "connection": connection, "lengths": lengths, "pseudo": pseudo,
    ]

    /// Nothing of it reaches an origin of either version, and the next request gets its own answer.
    @Test(arguments: groups.keys.sorted(), [Crossing.h2ToH1, .h2ToH2])
    func nothingIsSmuggled(group: String, crossing: Crossing) async throws {
        let client = try await HTTP2Client(in: shared, authority: shared.authority(of: crossing.host))
        for (number, trial) in try #require(Self.groups[group]).enumerated() {
            let marker = "/\(group)/\(crossing)/\(number)"
            let stream = try await client.request(exact: fields(trial, marker, crossing), ends: trial.body.isEmpty)
            if !trial.body.isEmpty { try await client.send(trial.body, on: stream, ends: true) }
            let head = try await client.head(stream)
            let label: Comment = "\(trial): \(head)"
            switch trial.outcome {
            case .reset: #expect(head.reset == "PROTOCOL_ERROR" || head.status == 400, label)
            case .status(let status): #expect(head.status == status, label)
            case .line(let line):
                let body = try await client.body(stream)
                #expect(head.status == 200, label)
                let received = try JSONDecoder().decode(ReceivedLines.self, from: Data((body.text ?? "").utf8))
                #expect(
                    received.lines.contains { $0.lowercased().hasPrefix(line.lowercased()) }, "\(trial): \(received)")
                #expect(received.length == trial.body.utf8.count, "\(trial): \(received)")
            }
            let after = try await client.get("/after/\(marker)")
            #expect(
                after.head.status == 200 && after.body.text?.contains("\"target\": \"/after/\(marker)\"") == true,
                "\(trial): \(after)")
        }
        let seen = try shared.origin(crossing).events.all("request").compactMap { $0["target"] }
        #expect(!seen.contains { $0.contains("smuggled") }, "\(seen)")
        #expect(
            !(try shared.origin(crossing).events.all("request").contains { $0["lines"]?.contains("smuggled:") == true })
        )
    }

    private struct ReceivedLines: Decodable {
        let lines: [String]
        let length: Int
    }

    private func fields(_ trial: Case, _ path: String, _ crossing: Crossing) -> [[String]] {
        let usual = [
            [":method", trial.method], [":scheme", "https"], [":authority", shared.authority(of: crossing.host)],
            [":path", path],
        ]
        let given = Set(trial.fields.map { $0[0] })
        return usual.filter { !given.contains($0[0]) && !trial.omitted.contains($0[0]) } + trial.fields
    }
}
