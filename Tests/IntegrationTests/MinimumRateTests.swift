import Foundation
import Testing

/// `limits.minimum_rate`: bodies that drip are cut, and bodies that pause aren't. No other timeout is short enough to
/// end them.
@Suite(.timeLimit(.minutes(5)))
struct MinimumRateTests {
    private static let rate = "minimum_rate: 1KiB/2s"

    /// - Parameter pins: lines of the origin's entry.
    private func prepare(
        _ bed: TestBed, rate: String = rate, entry: [String] = [], rules: [String] = []
    ) async throws -> (SharedBed, String) {
        let origin = try await PythonPeer(in: bed, script: "dripping.py", ["origin"])
        let shared = try await RuleBed.prepare(
            bed, rules: rules, extra: entry,
            sections: ["limits": [rate], "timeouts": ["idle_upstream: 100ms", "idle_client: 1h", "first_byte: 1h"]])
        return (shared, "http://\(OriginBed.name):\(origin.port)")
    }

    private func cause(_ part: String, in shared: SharedBed) async throws {
        _ = try await shared.proxy.events.first("exchange") { $0["cause"]?.contains(part) == true }
    }

    // MARK: Responses

    @Test(arguments: ["length", "chunked", "close"]) func aResponseThatDripsIsCut(_ framing: String) async throws {
        try await withTestBed { bed in
            let (shared, url) = try await prepare(bed)
            let before = try await shared.footprint()
            let run = try await shared.curl("-i", "--max-time", "120", "\(url)/\(framing)")
            // What arrived is delivered, with an end that can't pass as complete.
            #expect(
                !run.succeeded && !run.errors.contains("timed out") && run.output.hasPrefix("HTTP/1.1 200 "), "\(run)")
            #expect(run.output.hasSuffix("xx"), "\(run)")
            try await cause(
                "the origin sent less of the response than 1024 bytes within 2.0 seconds (minimum_rate)", in: shared)
            try await shared.hasGivenBack(since: before)
        }
    }

    /// A body without a minimum rate, or exempted by a rule, outlasts many windows. The client ends it.
    @Test(arguments: ["stream", "off", "exempt"]) func whatMayDripIsLeftAlone(_ reason: String) async throws {
        try await withTestBed { bed in
            let (shared, url) = try await prepare(
                bed, rate: reason == "off" ? "minimum_rate: off" : "minimum_rate: 1KiB/100ms",
                rules: reason == "exempt" ? ["{path: /length, session: {minimum_rate: off}}"] : [])
            let path = reason == "stream" ? "stream" : "length"
            // 40 drops, at 50 ms each: 20 windows.
            let run = try await bed.run(
                ["sh", "-c", "curl -sSN \(url)/\(path) | head -c 40 | wc -c"],
                environment: shared.proxy.clientEnvironment)
            #expect(run.output.trimmingCharacters(in: .whitespacesAndNewlines) == "40", "\(run)")
        }
    }

    /// A window without a byte passes.
    @Test func aPauseIsNoDrip() async throws {
        try await withTestBed { bed in
            let (shared, url) = try await prepare(bed, rate: "minimum_rate: 1KiB/100ms")
            let run = try await shared.curl("\(url)/pause/1")
            #expect(run.output == "later", "\(run)")
        }
    }

    /// A rule's rate takes precedence over the daemon's.
    @Test func aRuleMayAskForMore() async throws {
        try await withTestBed { bed in
            let (shared, url) = try await prepare(
                bed, rate: "minimum_rate: off", entry: ["session: {minimum_rate: 2KiB/1s}"])
            let run = try await shared.curl("--max-time", "120", "\(url)/length")
            #expect(!run.succeeded && !run.errors.contains("timed out"), "\(run)")
            try await cause("less of the response than 2048 bytes within 1.0 seconds", in: shared)
        }
    }

    /// Like any interrupted download.
    @Test func aDownloadThatDripsIsContinued() async throws {
        try await withTestBed { bed in
            let (shared, url) = try await prepare(bed)
            let run = try await shared.curl("-o", bed.path("whole"), "\(url)/resumed")
            #expect(run.succeeded, "\(run)")
            let whole = try Data(contentsOf: URL(fileURLWithPath: bed.path("whole")))
            #expect(whole.elementsEqual((0..<256_000).map { UInt8(truncatingIfNeeded: $0) }))
            let resumed = try await shared.proxy.events.first("download.resume")
            #expect(resumed["cause"]?.contains("minimum_rate") == true, "\(resumed)")
        }
    }

    @Test func aResponseThatIsHeldIsRefused() async throws {
        try await withTestBed { bed in
            let (shared, url) = try await prepare(bed, rules: ["{path: /json, response: {serializer: json}}"])
            let run = try await shared.curl("-i", "--max-time", "120", "\(url)/json")
            #expect(run.output.hasPrefix("HTTP/1.1 502 ") && run.output.contains("http_response_incomplete"), "\(run)")
            #expect(run.output.contains("minimum_rate"), "\(run)")
        }
    }

    /// One that takes it slowly is as slow as one that sends so. The kernel's buffers take much in advance.
    @Test func aClientThatTakesItSlowlyIsCut() async throws {
        try await withTestBed { bed in
            let (shared, _) = try await prepare(bed, rate: "minimum_rate: 256MiB/2s")
            let before = try await shared.footprint()
            let run = try await shared.curl(
                "-o", "/dev/null", "--limit-rate", "200K", "--max-time", "240", "\(shared.plainURL)/large/4000000000")
            #expect(!run.succeeded && !run.errors.contains("timed out"), "\(run)")
            try await cause("the client took less of the response than", in: shared)
            try await shared.hasGivenBack(since: before)
        }
    }

    /// A held response is delivered without any more coming from the origin.
    @Test func aHeldResponseIsMeasuredAsItIsTaken() async throws {
        try await withTestBed { bed in
            let (shared, _) = try await prepare(
                bed, rate: "minimum_rate: 1KiB/200ms", rules: ["{path: \"/array/**\", response: {serializer: json}}"])
            let run = try await shared.curl(
                "-o", bed.path("array"), "--limit-rate", "4M", "\(shared.plainURL)/array/x/length/7000000")
            #expect(run.succeeded, "\(run)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: bed.path("array"))).count > 6_999_000)
        }
    }

    // MARK: Requests

    private func drip(_ head: String, in bed: TestBed, to proxy: ProxyProcess) async throws -> Run {
        try await bed.run([
            "timeout", "120", PythonPeer.python, PythonPeer.path("dripping.py"), "client", "\(proxy.port)", head,
        ])
    }

    @Test(arguments: [false, true]) func aRequestThatDripsIsRefused(isConverted: Bool) async throws {
        try await withTestBed { bed in
            let (shared, _) = try await prepare(
                bed, rules: isConverted ? ["{path: /echo, request: {convert_body: {from: form, to: json}}}"] : [])
            let before = try await shared.footprint()
            let host = "\(OriginBed.name):\(shared.secondOriginPort)"
            let type = isConverted ? "Content-Type: application/x-www-form-urlencoded\\r\\n" : ""
            let run = try await drip(
                "POST http://\(host)/echo HTTP/1.1\\r\\nHost: \(host)\\r\\n\(type)Content-Length: 100000\\r\\n\\r\\n",
                in: bed,
                to: shared.proxy)
            #expect(run.output.hasPrefix("HTTP/1.1 408 "), "\(run)")
            try await cause(
                "the client sent less of the request than 1024 bytes within 2.0 seconds (minimum_rate)", in: shared)
            try await shared.hasGivenBack(since: before)
        }
    }

    @Test func anOriginThatTakesTheRequestSlowlyIsLeft() async throws {
        try await withTestBed { bed in
            let (shared, url) = try await prepare(bed, rate: "minimum_rate: 16MiB/2s")
            let body = try bed.file("body", String(repeating: "x", count: 64 << 20))
            let run = try await shared.curl(
                "-i", "--max-time", "240", "-H", "Expect:", "--data-binary", "@\(body)", "\(url)/swallow")
            #expect(run.output.hasPrefix("HTTP/1.1 504 ") && run.output.contains("connection_write_timeout"), "\(run)")
            try await cause("the origin took less of the request than", in: shared)
        }
    }

    /// A delay caused by a rule is not counted.
    @Test func aThrottledRequestIsNotMeasured() async throws {
        try await withTestBed { bed in
            let (shared, _) = try await prepare(
                bed, rate: "minimum_rate: 1MiB/100ms",
                rules: ["{path: /echo, request: {throttle: {packet: 10B, delay: 50ms}}}"])
            let run = try await shared.curl(
                "-i", "--data-binary", String(repeating: "x", count: 200), "\(shared.plainURL)/echo")
            #expect(run.output.hasPrefix("HTTP/1.1 200 "), "\(run)")
        }
    }
}
