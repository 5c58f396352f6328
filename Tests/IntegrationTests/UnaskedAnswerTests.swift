import Foundation
import Testing

/// Answers that say of themselves that they have no body, or only a part of one: the rules for bodies aren't escaped by
/// that.
@Suite(.sharedBed(UnaskedAnswerBed.prepare), .timeLimit(.minutes(5)))
struct UnaskedAnswerTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    private func curl(_ arguments: [String]) async throws -> Run {
        try await shared.bed.curl(via: shared.proxy, arguments)
    }
    private func answer(_ rule: String, _ message: String) -> String { shared.url + RuleBed.answer(rule, message) }

    private static let html = String(repeating: "<p>not JSON</p>", count: 400)

    /// With any bytes after it, with a rule and without.
    @Test(
        arguments: ["json", "short", "free"],
        [
            "Content-Type: text/html\r\nContent-Length: \(html.utf8.count)\r\n\r\n\(html)",
            "Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<p>ab\r\n0\r\n\r\n",
            "Content-Length: 0\r\n\r\n", "\r\n",
        ])
    func aResetHasNoBody(rule: String, rest: String) async throws {
        let run = try await curl([
            "-i", answer(rule, "HTTP/1.1 205 Reset Content\r\nX-Kept: 1\r\n" + rest), shared.url + "/received/next",
        ])
        #expect(run.output.hasPrefix("HTTP/1.1 205 ") && run.output.contains("\r\nX-Kept: 1\r\n"), "\(run)")
        #expect(run.output.contains("\r\nContent-Length: 0\r\n") && !run.output.contains("<p>"), "\(run)")
        // The client's connection stays in use, and no leftover byte is taken for another response.
        #expect(run.output.contains("HTTP/1.1 200 ") && run.output.contains("/received/next"), "\(run)")
    }

    private static func part(_ fields: String, body: String = "nope") -> String {
        "HTTP/1.1 206 Partial Content\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    @Test(arguments: ["json", "short", "free"]) func aPartThatNobodyAskedForIsMalformed(rule: String) async throws {
        for fields in ["", "Content-Range: bytes 0-3/4\r\n", "Content-Type: multipart/byteranges; boundary=x\r\n"] {
            for arguments in [[], ["-d", "a"], ["-I"]] {
                let run = try await curl(["-i"] + arguments + [answer(rule, Self.part(fields))])
                #expect(run.output.hasPrefix("HTTP/1.1 502 Malformed response from origin.test"), "\(run)")
                #expect(
                    arguments == ["-I"] || run.output.contains("206 Partial Content to a request without Range"),
                    "\(run)")
            }
        }
        let line = try await shared.proxy.events.first("exchange") {
            $0["path"]?.hasPrefix("/answer/\(rule)/") == true && $0["status"] == "502"
        }
        #expect(line["error"] == "http_protocol_error", "\(line)")
    }

    @Test(arguments: [
        ("bytes=0-3", "Content-Range: bytes 4-7/8\r\n"), ("bytes=0-3", "Content-Range: bytes 0-7/8\r\n"),
        ("bytes=0-3", ""),
        ("bytes=0-3", "Content-Type: multipart/byteranges; boundary=x\r\n"),
        ("bytes=-2", "Content-Range: bytes 0-3/4\r\n"),
        ("bytes=0-3", "Content-Range: bytes */4\r\n"),
    ])
    func anotherPartIsMalformed(range: String, fields: String) async throws {
        let run = try await curl(["-i", "-H", "Range: \(range)", answer("free", Self.part(fields))])
        #expect(
            run.output.hasPrefix("HTTP/1.1 502 ")
                && run.output.contains("a different part than requested"), "\(run)")
    }

    @Test func thePartThatWasAskedForPasses() async throws {
        for rule in ["json", "free"] {
            let type = "Content-Type: application/json\r\n"
            for (range, fields) in [
                ("bytes=0-3", "Content-Range: bytes 0-3/10\r\n"), ("bytes=0-", "Content-Range: bytes 0-3/4\r\n"),
                ("bytes=-4", "Content-Range: bytes 6-9/10\r\n"), ("bytes=0-9", "Content-Range: bytes 0-3/10\r\n"),
            ] {
                let run = try await curl(["-i", "-H", "Range: \(range)", answer(rule, Self.part(type + fields))])
                #expect(run.output.hasPrefix("HTTP/1.1 206 ") && run.output.hasSuffix("\r\n\r\nnope"), "\(run)")
            }
        }
        let several = try await curl([
            "-i", "-H", "Range: bytes=0-1,4-5",
            answer("free", Self.part("Content-Type: multipart/byteranges; boundary=x\r\n")),
        ])
        #expect(several.output.hasPrefix("HTTP/1.1 206 "), "\(several)")
        // No one but the origin knows of the Range that the rules add.
        let ofRule = try await curl(["-i", answer("ranged", Self.part("Content-Range: bytes 0-3/10\r\n"))])
        #expect(ofRule.output.hasPrefix("HTTP/1.1 206 "), "\(ofRule)")
        let without = try await curl([
            "-i", "-r", "0-3", answer("unranged", Self.part("Content-Range: bytes 0-3/10\r\n")),
        ])
        #expect(without.output.hasPrefix("HTTP/1.1 502 "), "\(without)")
    }

    /// It has no body that rules could be escaped by, and origins send it to whom they please.
    @Test func notModifiedPassesWithoutACondition() async throws {
        let run = try await curl(["-i", answer("json", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n")])
        #expect(run.output.hasPrefix("HTTP/1.1 304 "), "\(run)")
    }

    // MARK: Content-Length

    @Test(arguments: [
        "Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5, 5\r\n",
        "Content-Length: 5,5\r\nX: 1\r\nContent-Length: 5\r\n",
    ])
    func aRepeatedLengthIsTakenOnce(fields: String) async throws {
        let run = try await curl(["-i", answer("free", "HTTP/1.1 200 OK\r\n\(fields)\r\nhello")])
        #expect(run.output.hasSuffix("\r\n\r\nhello"), "\(run)")
        #expect(
            run.output.components(separatedBy: "Content-Length:").count == 2
                && run.output.contains("\r\nContent-Length: 5\r\n"), "\(run)")
        // Up as well: one message, with one length.
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send(
            """
            POST \(shared.plainURL)/received/x HTTP/1.1\r\nHost: \
            \(OriginBed.name):\(shared.secondOriginPort)\r\n\(fields)Connection: close\r\n\r\nhello
            """
        )
        let response = String(decoding: try await connection.receiveAll(), as: UTF8.self)
        #expect(response.contains("\"body\": \"hello\"") && response.contains("\"Content-Length: 5\""), "\(response)")
        #expect(response.components(separatedBy: "\"Content-Length:").count == 2, "\(response)")
    }

    @Test func lengthsThatDifferAreRefused() async throws {
        for fields in [
            "Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5, 6\r\n", "Content-Length: 5, 05\r\n",
            "Content-Length: 5,\r\n",
        ] {
            let run = try await curl(["-i", answer("free", "HTTP/1.1 200 OK\r\n\(fields)\r\nhello!")])
            #expect(run.output.hasPrefix("HTTP/1.1 502 "), "\(run)")
        }
    }
}

private enum UnaskedAnswerBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await RuleBed.prepare(
            bed,
            rules: [
                "{path: /answer/json/**, response: {serializer: json}}",
                "{path: /answer/short/**, response: {max_body: 100}}",
                "{path: /answer/ranged/**, request: {set_headers: {Range: bytes=0-3}}}",
                "{path: /answer/unranged/**, request: {remove_headers: [Range]}}",
            ])
    }
}
