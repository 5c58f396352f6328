import Foundation
import Testing

/// Responses that are held back, or inspected in passing: limits, codings, premature ends.
@Suite(.sharedBed(RuleHeldBed.prepare), .timeLimit(.minutes(5)))
struct RuleHeldTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    private static let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

    private func get(_ rule: String, _ message: [UInt8], _ arguments: String...) async throws -> Run {
        try await shared.bed.curl(via: shared.proxy, ["-i"] + arguments + [shared.url + RuleBed.answer(rule, message)])
    }

    private func get(_ rule: String, _ message: String) async throws -> Run { try await get(rule, Array(message.utf8)) }

    // MARK: Too long

    /// limits.inspected_body is 256 KiB here. Chunks of seven bytes nearly double what is transferred.
    @Test(arguments: ["length", "chunked", "close"], ["--http1.1", "--http1.0"])
    func whatFitsIsJudgedAndWhatDoesNotIsRefusedOrPasses(framing: String, version: String) async throws {
        for (rule, length, status) in [
            ("json", 250_000, 200), ("json", 270_000, 502), ("pass", 3_000_000, 200), ("report", 3_000_000, 200),
            ("report", 250_000, 200), ("report-nulls", 200_000, 200), ("report-nulls", 3_000_000, 200),
        ] {
            let run = try await shared.curl(
                version, "-o", "/dev/null", "-w", "%{http_code} %{size_download}",
                "\(shared.url)/array/\(rule)/\(framing)/\(length)")
            #expect(run.succeeded && run.output.hasPrefix("\(status) "), "\(rule) \(length): \(run)")
            if status == 200 { #expect(run.output == "200 \(length + 3)", "\(rule) \(length): \(run)") }
        }
        // A response that passed unchecked is reported.
        let path = "/array/report/\(framing)/3000000"
        let event = try await shared.proxy.events.first("serializer.report") { $0["path"] == path }
        #expect(event["code"] == "-1103", "\(event)")
    }

    // MARK: Reported

    @Test func aReportedResponsePassesAndIsToldOf() async throws {
        let run = try await get("report", RuleBed.response("{no json}", status: "203 Odd"))
        #expect(run.output.hasPrefix("HTTP/1.1 203 ") && run.output.hasSuffix("{no json}"), "\(run)")
        let event = try await shared.proxy.events.first("serializer.report") { $0["status"] == "203" }
        #expect(event["code"] == "-1016" && event["cause"]?.contains("line 1, column 2") == true, "\(event)")
        let status = try await get("report", RuleBed.response("[]", status: "500 Broken"))
        #expect(status.output.hasPrefix("HTTP/1.1 500 "), "\(status)")
        _ = try await shared.proxy.events.first("serializer.report") { $0["code"] == "-1011" }
    }

    /// A reported response isn't held back until its end.
    @Test func aReportHoldsNothingBack() async throws {
        let run = try await shared.bed.run(
            ["sh", "-c", "curl -sS \(shared.url)/endless | head -c 3000000 | wc -c"],
            environment: shared.proxy.clientEnvironment)
        #expect(run.output.contains("3000000"), "\(run)")
    }

    // MARK: Codings

    private func coded(_ text: String, by coding: String) async throws -> [UInt8] {
        let name = "coded-\(UUID())"
        try shared.bed.file(name, text)
        let script =
            """
            const \
            z=require('zlib'),f=require('fs');f.writeFileSync('\(name).out',z.\(coding)(f.readFileSync('\(name)')))
            """
        let run = try await shared.bed.run(["node", "-e", script])
        #expect(run.succeeded, "\(run)")
        return try Array(Data(contentsOf: URL(fileURLWithPath: shared.bed.path(name + ".out"))))
    }

    @Test(arguments: [("gzipSync", "gzip"), ("brotliCompressSync", "br"), ("deflateSync", "deflate")])
    func aCodedBodyIsJudgedAndContinuesAsItCame(function: String, coding: String) async throws {
        for (text, status) in [("[1, null]", 200), ("[1, null,]", 502)] {
            let body = try await coded(text, by: function)
            let head = Array("\(Self.head)Content-Encoding: \(coding)\r\nContent-Length: \(body.count)\r\n\r\n".utf8)
            let run = try await get("json", head + body, "--compressed")
            #expect(run.output.hasPrefix("HTTP/1.1 \(status) "), "\(run)")
            if status == 200 {
                #expect(run.output.hasSuffix(text) && run.output.contains("Content-Encoding: \(coding)"), "\(run)")
            }
            let rewritten = try await get("nulls", head + body)
            if status == 200 {
                #expect(
                    rewritten.output.hasSuffix("[1]") && !rewritten.output.contains("Content-Encoding"), "\(rewritten)")
            }
            let broken = try await get("json", head + body.dropLast() + [body.last.map { $0 ^ 0x55 } ?? 0])
            if coding != "br" { #expect(broken.output.hasPrefix("HTTP/1.1 502 "), "\(broken)") }
        }
    }

    @Test(arguments: [("gzipSync", "gzip"), ("brotliCompressSync", "br")])
    func aBombIsRefused(function: String, coding: String) async throws {
        let body = try await coded("[" + String(repeating: " ", count: 10_000_000) + "]", by: function)
        let head = Array("\(Self.head)Content-Encoding: \(coding)\r\nContent-Length: \(body.count)\r\n\r\n".utf8)
        let run = try await get("json", head + body)
        #expect(run.output.hasPrefix("HTTP/1.1 502 ") && body.count < 20_000, "\(run)")
    }

    @Test func anUnknownCodingIsRefused() async throws {
        let run = try await get("json", "\(Self.head)Content-Encoding: secret\r\nContent-Length: 2\r\n\r\n[]")
        #expect(run.output.hasPrefix("HTTP/1.1 502 ") && run.output.contains("http_response_content_coding"), "\(run)")
    }

    // MARK: Interrupted

    @Test(
        arguments: ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n"],
        ["cut", "close"])
    func anInterruptedHeldResponseIsABadGateway(framing: String, kind: String) async throws {
        let name = "x\(UUID())"
        let start = framing.contains("chunked") ? "9\r\n[1, 2, 3]\r\n" : "[1, 2, 3]"
        let path = "/held-answer/\(name)/\(kind)/" + RuleBed.encoded(Array("\(Self.head)\(framing)\r\n\(start)".utf8))
        async let held = shared.curl("-i", shared.url + path)
        _ = try await shared.origin?.events.first("held") { $0["name"] == name }
        _ = try await shared.bed.curl(via: shared.proxy, ["\(shared.url)/release/\(name)"])
        let run = try await held
        if framing.contains("close"), kind == "close" {
            #expect(run.output.hasPrefix("HTTP/1.1 200 ") && run.output.hasSuffix("[1, 2, 3]"), "\(run)")
            return
        }
        #expect(run.output.hasPrefix("HTTP/1.1 502 Incomplete response from origin.test"), "\(run)")
        #expect(!run.output.contains("[1, 2, 3]"), "\(run)")
    }

    @Test func aClientThatGoesAwayWhileHeldTakesTheOriginsConnectionWithIt() async throws {
        let name = "x\(UUID())"
        let client = try await shared.bed.start(
            ["curl", "-sS", shared.url + "/held-gone/\(name)"], environment: shared.proxy.clientEnvironment)
        let held = try await shared.origin?.events.first("held") { $0["name"] == name }
        client.send(signal: SIGKILL)
        let number = try #require(held?["connection"])
        _ = try await shared.origin?.events.first("closed") { $0["connection"] == number }
    }
}

private enum RuleHeldBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        func rule(_ name: String, _ response: String) -> String {
            "{path: /answer/\(name)/**, response: {\(response)}}"
        }
        return try await RuleBed.prepare(
            bed,
            rules: [
                rule("json", "serializer: json"), rule("pass", "serializer: json, oversize: pass"),
                rule("report", "serializer: json, enforcement: report"),
                rule("nulls", "serializer: json, remove_null_values: true"),
                "{path: /array/json/**, response: {serializer: json}}",
                "{path: /array/pass/**, response: {serializer: json, oversize: pass}}",
                "{path: /array/report/**, response: {serializer: json, enforcement: report}}",
                """
                {path: /array/report-nulls/**, \
                response: {serializer: json, remove_null_values: true, max_body: 100KiB, enforcement: report}}
                """,
                "{path: /held-answer/**, response: {serializer: json}}",
                "{path: /held-gone/**, response: {serializer: json}}",
                "{path: /endless, response: {serializer: json, enforcement: report}}",
            ])
    }
}
