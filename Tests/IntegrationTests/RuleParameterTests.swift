import Foundation
import Testing

/// Parameters and converted bodies, as the origin sees them.
@Suite(.sharedBed(RuleParameterBed.prepare), .timeLimit(.minutes(5)))
struct RuleParameterTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    private func received(_ arguments: String...) async throws -> ReceivedRequest {
        try ReceivedRequest(try await shared.bed.curl(via: shared.proxy, arguments))
    }

    private static let query = "user%5Bname%5D=x%20y&user%5Btags%5D%5B%5D=a&user%5Btags%5D%5B%5D=b"

    // MARK: Parameters

    @Test func parametersOfAGETGoIntoTheQueryAfterItsOwn() async throws {
        for url in [shared.url, shared.plainURL] {
            #expect(try await received(url + "/received/form").target == "/received/form?\(Self.query)")
            #expect(try await received(url + "/received/form?a=1").target == "/received/form?a=1&\(Self.query)")
        }
        #expect(
            try await received("-X", "POST", shared.url + "/received/query").target == "/received/query?\(Self.query)")
    }

    @Test(arguments: [
        ("form", "application/x-www-form-urlencoded", query),
        ("json", "application/json", #"{"user":{"name":"x y","tags":["a","b"]}}"#),
        ("plist", "application/x-plist", "<string>x y</string>"),
    ])
    func parametersOfAPOSTAreItsBody(path: String, type: String, body: String) async throws {
        for url in [shared.url, shared.plainURL] {
            let run = try await received("-X", "POST", url + "/received/" + path)
            #expect(run.values("Content-Type") == [type], "\(run)")
            #expect(path == "plist" ? run.body.contains(body) : run.body == body, "\(run)")
            #expect(run.values("Content-Length") == ["\(run.length)"])
        }
    }

    @Test func aRequestWithABodyKeepsIt() async throws {
        let run = try await received("-d", "own=1", shared.url + "/received/json")
        #expect(run.body == "own=1" && run.values("Content-Type") == ["application/x-www-form-urlencoded"], "\(run)")
    }

    // MARK: Conversion

    private static let form = "user%5Bname%5D=x+y&user%5Btags%5D%5B%5D=a&user%5Btags%5D%5B%5D=b"
    private static let json = #"{"user":{"name":"x y","tags":["a","b"]}}"#
    private static let plist = """
        <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>user</key><dict><key>name</key>\
        <string>x y</string><key>tags</key><array><string>a</string><string>b</string></array></dict></dict></plist>
        """

    @Test(arguments: [
        ("form", "json"), ("form", "property-list"), ("json", "form"), ("json", "property-list"),
        ("property-list", "form"), ("property-list", "json"),
    ])
    func aBodyIsConvertedInEachDirection(from: String, to: String) async throws {
        let types = [
            "form": "application/x-www-form-urlencoded", "json": "application/json",
            "property-list": "application/x-plist",
        ]
        let bodies = ["form": Self.form, "json": Self.json, "property-list": Self.plist]
        let file = try shared.bed.file("body-\(from)-\(to)", try #require(bodies[from]))
        for extra in [[], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"]] {
            let run = try ReceivedRequest(
                try await shared.bed.curl(
                    via: shared.proxy,
                    [
                        "-H", "Content-Type: \(types[from] ?? "")", "-H", "Content-Digest: sha-256=:AAAA:",
                        "--data-binary", "@\(file)",
                    ]
                        + extra + [shared.url + "/received/\(from)/\(to)"]))
            #expect(run.values("Content-Type") == [types[to] ?? ""], "\(run)")
            #expect(
                run.values("Content-Length") == ["\(run.length)"] && run.values("Transfer-Encoding") == [], "\(run)")
            #expect(run.values("Expect") == [] && run.values("Content-Digest") == [], "\(run)")
            switch to {
            case "form": #expect(run.body.replacingOccurrences(of: "+", with: "%20") == Self.query, "\(run)")
            case "json": #expect(run.body == Self.json, "\(run)")
            default: #expect(run.body.contains("<key>tags</key>") && run.body.contains("<string>b</string>"), "\(run)")
            }
        }
    }

    @Test func otherTypesAndRequestsWithoutABodyPassUnchanged() async throws {
        let text = try await received("-H", "Content-Type: text/plain", "-d", "a=1", shared.url + "/received/form/json")
        #expect(text.body == "a=1" && text.values("Content-Type") == ["text/plain"], "\(text)")
        let none = try await received(
            "-H", "Content-Type: application/x-www-form-urlencoded", shared.url + "/received/form/json")
        #expect(
            none.values("Content-Type") == ["application/x-www-form-urlencoded"] && none.values("Content-Length") == [],
            "\(none)")
    }

    @Test func aMalformedBodyIsToldWithItsPlace() async throws {
        let run = try await shared.curl(
            "-i", "-H", "Content-Type: application/json", "-d", #"{"a": 1,, }"#, shared.url + "/received/json/form")
        #expect(run.output.hasPrefix("HTTP/1.1 400 ") && run.output.contains("line 1, column 9"), "\(run)")
        let list = try await shared.curl(
            "-i", "-H", "Content-Type: application/json", "-d", "[1]", shared.url + "/received/json/form")
        #expect(list.output.hasPrefix("HTTP/1.1 400 ") && list.output.contains("an array"), "\(list)")
    }

    @Test(arguments: [[], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"]])
    func aBodyThatIsTooLongIsRefused(extra: [String]) async throws {
        let file = try shared.bed.file("long-\(UUID())", "a=" + String(repeating: "x", count: 256 << 10))
        let run = try await shared.bed.curl(
            via: shared.proxy, ["-i", "--data-binary", "@\(file)"] + extra + [shared.url + "/received/form/json"])
        #expect(run.output.contains("HTTP/1.1 413 ") && run.output.contains("limits.inspected_body"), "\(run)")
        if extra.last?.hasPrefix("Expect") == true { #expect(!run.output.contains("100 Continue"), "\(run)") }
    }

    /// More than one buffer's worth.
    @Test func aLongBodyIsConvertedWhole() async throws {
        let text = String(repeating: "0123456789", count: 20_000)
        let file = try shared.bed.file("whole-\(UUID())", "a=" + text)
        for extra in [[], ["-H", "Transfer-Encoding: chunked"]] {
            let run = try ReceivedRequest(
                try await shared.bed.curl(
                    via: shared.proxy, ["--data-binary", "@\(file)"] + extra + [shared.url + "/received/form/json"]))
            #expect(run.body == #"{"a":"\#(text)"}"#, "\(run.length)")
        }
    }

    @Test func aCodedBodyIsRefused() async throws {
        let run = try await shared.curl(
            "-i", "-H", "Content-Encoding: gzip", "-d", "a=1", shared.url + "/received/form/json")
        #expect(run.output.hasPrefix("HTTP/1.1 415 "), "\(run)")
    }

    /// One after the other and all at once, with and without chunks: each arrives as it is.
    @Test func theRequestsAfterAConvertedOneAreRight() async throws {
        func post(_ fields: String, _ body: String) -> String {
            "POST /received/form/json HTTP/1.1\r\nHost: \(shared.authority)\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\n\(fields)\r\n\(body)"
        }
        let requests = [
            post("Content-Length: 3\r\n", "a=1"),
            post("Transfer-Encoding: chunked\r\n", "1;x=y\r\nb\r\n2\r\n=2\r\n0\r\nX-End: 1\r\n\r\n"),
            "GET /large/5 HTTP/1.1\r\nHost: \(shared.authority)\r\n\r\n", post("Content-Length: 0\r\n", ""),
            post("Content-Length: 3\r\nExpect: 100-continue\r\n", "c=3"),
            """
            POST /received/x HTTP/1.1\r\nHost: \(shared.authority)\r\nContent-Length: 3\r\nConnection: close\r\n\r\nd=4
            """,
        ]
        let run = try await shared.bed.secureExchange(via: shared.proxy, to: shared.authority, requests.joined())
        let answers = run.output.components(separatedBy: "HTTP/1.1 200").dropFirst()
        #expect(answers.count == 6, "\(run)")
        let order = [
            #""body": "{\"a\":\"1\"}""#, #""body": "{\"b\":\"2\"}""#, "\r\n\r\n", #""body": """#,
            #""body": "{\"c\":\"3\"}""#, #""body": "d=4""#,
        ]
        for (answer, part) in zip(answers, order) { #expect(answer.contains(part), "\(part) in \(answer)") }
    }

    /// Lines of chunks take no memory, however long they are.
    @Test func linesOfChunksAreNotGathered() async throws {
        let before = try shared.proxy.peakMemory()
        let chunk = "1;x=\(String(repeating: "y", count: 4000))\r\na\r\n"
        let body = String(repeating: chunk, count: 20_000) + "0\r\n\r\n"
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send(
            "POST \(shared.plainURL)/received/form/json HTTP/1.1\r\n"
                + "Host: \(OriginBed.name):\(shared.secondOriginPort)\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
        let answer = try await connection.response()
        #expect(answer.status == 200 && answer.body.contains("\"length\": 20009"), "\(answer)")
        if !Sanitizer.isOn { #expect(try shared.proxy.peakMemory() - before < 40 << 20) }
    }

    @Test func aClientThatEndsWithinItsBodyLeavesALine() async throws {
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send(
            """
            POST \(shared.plainURL)/received/form/json HTTP/1.1\r\nHost: \
            \(OriginBed.name):\(shared.secondOriginPort)\r\n
            """
                + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\na=1")
        try await connection.finishSending()
        try await connection.end()
        let event = try await shared.proxy.events.first("exchange") {
            $0["cause"]?.contains("body was received") == true
        }
        #expect(event["method"] == "POST", "\(event)")
    }
}

private enum RuleParameterBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let parameters = "parameters: {user: {name: \"x y\", tags: [a, b]}}"
        return try await RuleBed.prepare(
            bed,
            rules: [
                "{path: /received/form, request: {\(parameters)}}",
                "{path: /received/query, request: {\(parameters), query_methods: [GET, POST]}}",
                "{path: /received/json, request: {serializer: json, \(parameters)}}",
                "{path: /received/plist, request: {serializer: property-list, \(parameters)}}",
            ]
                + ["form", "json", "property-list"].flatMap { from in
                    ["form", "json", "property-list"].filter { $0 != from }.map { to in
                        "{path: /received/\(from)/\(to), request: {convert_body: {from: \(from), to: \(to)}}}"
                    }
                })
    }
}
