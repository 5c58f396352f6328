import Foundation
import Testing

/// Response rules: a valid response passes unchanged, an invalid one doesn't reach the client.
@Suite(.sharedBed(RuleResponseBed.prepare), .timeLimit(.minutes(5)))
struct RuleResponseTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    private func get(_ rule: String, _ message: String, _ arguments: String...) async throws -> Run {
        try await get(rule, Array(message.utf8), arguments)
    }

    private func get(_ rule: String, _ message: [UInt8], _ arguments: [String]) async throws -> Run {
        try await shared.bed.curl(via: shared.proxy, ["-i"] + arguments + [shared.url + RuleBed.answer(rule, message)])
    }

    private func response(
        _ body: String, _ type: String? = "application/json", _ status: String = "200 OK", _ fields: String = ""
    ) -> String {
        RuleBed.response(body, type: type, status: status, fields: fields)
    }

    // MARK: Keys

    /// A response that the rule accepts, and some that it refuses, with words of the reason.
    struct Case: Sendable, CustomTestStringConvertible {
        let rule: String
        let message: String
        let reason: String?
        var testDescription: String { "\(rule) \(reason ?? "accepted") \(message.suffix(20))" }
        init(_ rule: String, _ reason: String?, _ body: String, _ type: String? = nil, status: String = "200 OK") {
            (self.rule, self.reason) = (rule, reason)
            message = RuleBed.response(body, type: type, status: status)
        }
    }

    static let cases: [Case] = [
        Case("json", nil, "{\"a\": [1]}", "application/json"),
        Case("json", nil, " ", "text/json; charset=utf-8"),
        Case("json", nil, "", "text/html"),
        Case("json", "Body of origin.test is not JSON: line 1, column 5", "{\"a\"; 1}", "application/json"),
        Case("json", "Unacceptable content type text/html from origin.test", "{}", "text/html"),
        Case("json", "Missing content type from origin.test", "{}"),
        Case("json", "Unacceptable status 500 from origin.test", "{}", "application/json", status: "500 Broken"),
        Case("xml", nil, "<a><b/></a>", "application/xml"),
        Case("xml", "is not XML", "<a><b></a>", "text/xml"),
        Case("xml", "is not XML", "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>", "text/xml"),
        Case("plist", nil, "<plist version=\"1.0\"><array/></plist>", "application/x-plist"),
        Case("plist", "property list", "<plist><array></plist>", "application/x-plist"),
        Case("image", "Body of origin.test is not", "no image", "image/png"),
        Case("both", nil, "<a/>", "text/xml"), Case("both", nil, "{}", "application/json"),
        Case("both", "Body of origin.test is not", "{", "application/json"),
        Case("both", "Unacceptable content type", "{}", "text/plain"),
        Case("status", nil, "any", status: "201 Made"),
        Case("status", "Unacceptable status 304", "", status: "304 Not Modified"),
        Case("status", "Unacceptable status 404 from origin.test", "any", status: "404 Not Found"),
        Case("types", nil, "any", "text/plain"), Case("types", nil, ""),
        Case("types", "Unacceptable content type text/html from origin.test", "any", "text/html"),
        Case("max", nil, "0123456789", "text/plain"),
        Case("max", "longer than max_body, 10 bytes", "0123456789a", "text/plain"),
    ]

    @Test(arguments: cases)
    func aRuleAcceptsAndRefuses(example: Case) async throws {
        let run = try await get(example.rule, example.message)
        guard let reason = example.reason else {
            let status = example.message.dropFirst(9).prefix(3)
            #expect(run.output.hasPrefix("HTTP/1.1 \(status) "), "\(run)")
            if let body = example.message.components(separatedBy: "\r\n\r\n").last {
                #expect(body.isEmpty || run.output.hasSuffix("\r\n\r\n" + body), "\(run)")
            }
            return
        }
        #expect(run.output.hasPrefix("HTTP/1.1 502 ") && run.output.contains(reason), "\(run)")
        #expect(run.output.contains("Proxy-Status: pinproxy; error=http_"), "\(run)")
        #expect(run.output.contains("Content-Type: application/problem+json"), "\(run)")
    }

    @Test func aRefusalSaysAllThatIsKnown() async throws {
        let run = try await get("json", response("{\n  \"a\": nul\n}"))
        #expect(run.output.hasPrefix("HTTP/1.1 502 Body of origin.test is not JSON: line 2, column"), "\(run)")
        #expect(run.output.contains("Proxy-Status: pinproxy; error=http_protocol_error; details="), "\(run)")
        let told = try Problem(run)
        let mismatch = try #require(told.response)
        #expect(told.status == 502 && mismatch.code == -1016 && mismatch.expected == "JSON", "\(run)")
        #expect(mismatch.line == 2 && mismatch.column != nil && !mismatch.received.isEmpty, "\(run)")
        #expect(
            mismatch.rule?.hasPrefix("response.serializer, ") == true && mismatch.rule?.contains("pins.yaml:") == true,
            "\(run)")
        #expect(told.detail.contains("Expected: JSON") && told.detail.contains("pinproxy explain"), "\(run)")
        let event = try await shared.proxy.events.first("serializer.mismatch") {
            $0["cause"]?.contains("line 2") == true
        }
        #expect(event["host"] == OriginBed.name && event["status"] == "200" && event["code"] == "-1016", "\(event)")
        #expect(event["expected"] == "JSON" && event["method"] == "GET" && event["rule"] == mismatch.rule, "\(event)")
        #expect(event["path"]?.hasPrefix("/answer/json/") == true && event["entry"] == OriginBed.name, "\(event)")
    }

    @Test func aWrongStatusNestsAWrongType() async throws {
        let run = try await get("json", response("oops", "text/html", "500 Broken"))
        let mismatch = try #require(try Problem(run).response)
        #expect(mismatch.code == -1011 && mismatch.underlying?.first?.code == -1016, "\(run)")
    }

    // MARK: Framings

    /// A checked response passes unchanged, whatever its framing.
    @Test(arguments: ["--http1.1", "--http1.0"])
    func everyFramingIsJudged(version: String) async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        for (body, isRight) in [("{\"a\":1}", true), ("{\"a\":1,}", false)] {
            let half = body.prefix(3)
            let rest = body.dropFirst(3)
            for message in [
                "\(head)Content-Length: \(body.utf8.count)\r\n\r\n\(body)",
                """
                \(head)Transfer-Encoding: \
                chunked\r\n\r\n3;x=y\r\n\(half)\r\n\(String(rest.utf8.count, radix: 16))\r\n\(rest)\r\n0\r\nX: \
                1\r\n\r\n
                """,
            ] {
                let run = try await get("json", message, version)
                if isRight { #expect(run.succeeded && run.output.contains("\r\n\r\n" + body), "\(run)") }
                #expect(run.output.hasPrefix("HTTP/1.1 \(isRight ? 200 : 502) "), "\(run)")
            }
        }
    }

    @Test(arguments: ["HEAD", "GET"])
    func whatHasNoBodyIsJudgedByItsHead(method: String) async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n"
        if method == "HEAD" {
            let run = try await get("json", head, "-I")
            #expect(run.output.hasPrefix("HTTP/1.1 200 ") && run.output.contains("Content-Length: 5"), "\(run)")
            return
        }
        for status in ["204 No Content", "304 Not Modified"] {
            let run = try await get("json", "HTTP/1.1 \(status)\r\nContent-Type: text/html\r\nX-Kept: yes\r\n\r\n")
            #expect(run.output.hasPrefix("HTTP/1.1 \(status)") && run.output.contains("X-Kept: yes"), "\(run)")
        }
        let part = response("{\"a\"", "application/json", "206 Partial Content", "Content-Range: bytes 0-3/9\r\n")
        #expect(try await get("json", part, "-r", "0-3").output.hasPrefix("HTTP/1.1 206 "))
    }

    /// After 101 nothing can be checked, so a rule that doesn't list it refuses it.
    @Test func anUpgradeNeedsAStatusThatIsAccepted() async throws {
        let run = try await shared.bed.secureExchange(
            via: shared.proxy, to: shared.authority,
            "GET /upgrade HTTP/1.1\r\nHost: \(shared.authority)\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        #expect(run.output.hasPrefix("HTTP/1.1 502 Unacceptable status 101"), "\(run)")
    }

    // MARK: Length

    @Test func aLengthThatIsNotDeclaredIsCounted() async throws {
        let right = try await shared.curl(
            "-o", "/dev/null", "-w", "%{size_download}", shared.url + "/until-close/100000")
        #expect(right.succeeded && right.output == "100000", "\(right)")
        for version in ["--http1.1", "--http1.0"] {
            let cut = try await shared.curl(version, "-o", "/dev/null", shared.url + "/until-close/3000000")
            #expect(!cut.succeeded, "\(cut)")
        }
        let event = try await shared.proxy.events.first("serializer.mismatch") { $0["path"] == "/until-close/3000000" }
        #expect(event["code"] == "-1103", "\(event)")
    }

    @Test func chunksDoNotCountForTheLength() async throws {
        func chunked(_ body: String) -> String {
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body.map { "1;name=value\r\n\($0)\r\n" }.joined()
                + "0\r\n\r\n"
        }
        let right = try await get("max", chunked("0123456789"))
        #expect(right.succeeded && right.output.hasSuffix("0123456789"), "\(right)")
        let wrong = try await get("max", chunked("0123456789a"))
        #expect(!wrong.succeeded || wrong.output.hasPrefix("HTTP/1.1 502 "), "\(wrong)")
        #expect(!wrong.output.contains("0123456789a"), "\(wrong)")
    }

    // MARK: Rewritten

    @Test func nullValuesAreRemoved() async throws {
        let run = try await get(
            "nulls",
            response(
                #"{"a": null, "b": [1, null, {"c": null}], "d": 1e2}"#, "application/json", "200 OK",
                "ETag: \"strong\"\r\nContent-MD5: abc\r\nAccept-Ranges: bytes\r\nX-Kept: yes\r\n"))
        let parts = run.output.components(separatedBy: "\r\n\r\n")
        let body = try #require(parts.last)
        #expect(body.filter { $0 != " " } == #"{"b":[1,{}],"d":1e2}"#, "\(run)")
        #expect(run.output.contains("Content-Length: \(body.utf8.count)\r\n"), "\(run)")
        #expect(run.output.contains("ETag: W/\"strong\"") && run.output.contains("X-Kept: yes"), "\(run)")
        #expect(!run.output.contains("Content-MD5") && !run.output.contains("Accept-Ranges"), "\(run)")
        let none = try await get("nulls", response("[1]", "application/json", "200 OK", "ETag: \"strong\"\r\n"))
        #expect(none.output.contains("ETag: \"strong\"") && none.output.hasSuffix("[1]"), "\(none)")
    }

    @Test func aChunkedBodyIsRewrittenWithALength() async throws {
        let run = try await get(
            "nulls",
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
                + "6\r\n[null,\r\n3\r\n 1]\r\n0\r\nX: 1\r\n\r\n")
        #expect(!run.output.contains("Transfer-Encoding") && !run.output.contains("Trailer"), "\(run)")
        #expect(
            run.output.contains("Content-Length: ") && run.output.contains("1]") && !run.output.contains("null"),
            "\(run)")
    }

    /// The client's next request on the same connection finds its own answer.
    @Test func theResponsesAfterARewrittenOneAreRight() async throws {
        let null = RuleBed.answer("nulls", response("[null]"))
        let requests = ["/large/5", null, "/large/6", null, "/large/7"].enumerated().map { index, path in
            "GET \(path) HTTP/1.1\r\nHost: \(shared.authority)\r\n\(index == 4 ? "Connection: close\r\n" : "")\r\n"
        }
        let run = try await shared.bed.secureExchange(via: shared.proxy, to: shared.authority, requests.joined())
        let lengths = run.output.components(separatedBy: "Content-Length: ").dropFirst().map {
            Int($0.prefix { $0.isNumber })
        }
        #expect(lengths == [5, 2, 6, 2, 7], "\(run)")
    }
}

private enum RuleResponseBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        func rule(_ name: String, _ response: String) -> String {
            "{path: /answer/\(name)/**, response: {\(response)}}"
        }
        return try await RuleBed.prepare(
            bed,
            rules: [
                rule("json", "serializer: json"), rule("xml", "serializer: xml"),
                rule("plist", "serializer: property-list"),
                rule("image", "serializer: image"), rule("both", "serializer: [json, xml]"),
                rule("status", "status: [200-299]"), rule("types", "content_types: [text/plain]"),
                rule("max", "max_body: 10B"),
                rule("nulls", "serializer: json, remove_null_values: true"),
                "{path: /upgrade, response: {status: [200-299]}}",
                "{path: /until-close/**, response: {max_body: 100000B}}",
            ])
    }
}
