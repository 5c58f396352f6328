import Foundation
import Testing

/// Requests that the origin says it didn't process are sent again, within limits (RFC 9113 section 8.7).
@Suite(.timeLimit(.minutes(5)))
struct HTTP2RetryTests {
    /// As often as `RetryRule.Limits.unprocessed` says, and the first time.
    private static let mostTries = 5

    /// How often the origin got the request.
    private func tries(_ shared: SharedBed, _ path: String) throws -> Int {
        try #require(shared.origin).events.all("request").count { $0["target"] == path }
    }

    private static let bodies: [[String]] = [[], ["-d", "a=b"], ["--data-binary", "@body"]]

    @Test(arguments: ["refused", "leaving"], Crossing.bothToH2) func whatWasNotProcessedIsSentAgain(
        how: String, crossing: Crossing
    ) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let body = Pattern.bytes(40_000)
            let digest = try await shared.sha256(bed.file("body", body))
            for (number, arguments) in Self.bodies.enumerated() {
                let path = "/\(how)/2/\(number)"
                let run = try await bed.curl(
                    via: shared.proxy, [crossing.option, "-H", "Expect:"] + arguments + [shared.url(crossing, path)])
                let received = try ReceivedRequest(run)
                #expect(received.method == (number == 0 ? "GET" : "POST"), "\(run)")
                #expect(received.length == [0, 3, body.count][number], "\(run)")
                if number == 2 { #expect(received.sha256 == digest) }
                #expect(try tries(shared, path) == 3)
            }
            let isOne: @Sendable (LogEvent) -> Bool = { event in event["path"]?.hasPrefix("/\(how)/") == true }
            _ = try await shared.proxy.events.first("exchange", number: 3, where: isOne)
            let lines = shared.proxy.events.all("exchange").filter(isOne)
            #expect(lines.count == 3 && lines.allSatisfy { $0["status"] == "200" && $0["retried"] != nil }, "\(lines)")
            #expect(lines.allSatisfy { $0["retried"]?.contains("unprocessed") == true }, "\(lines)")
        }
    }

    @Test(arguments: ["refused", "leaving"]) func triesHaveABound(how: String) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let path = "/\(how)/1000/x"
            let run = try await shared.curl(.h2ToH2, path, "-i", "-d", "a=b")
            #expect(
                run.output.contains("HTTP/2 502") && run.output.contains("proxy-status: pinproxy; error="), "\(run)")
            #expect(try tries(shared, path) == Self.mostTries)
            // Other requests are served.
            #expect(try await shared.curl(.h2ToH2, "/echo", "-f").succeeded)
        }
    }

    /// A body that was only partly kept can't be sent again.
    @Test func aBodyThatIsNotKeptIsNotSentAgain() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["limits": ["replay_body: 1KiB"]])
            let file = try bed.file("body", Pattern.bytes(5_000_000))
            let run = try await shared.curl(.h2ToH2, "/refused/1/x", "-i", "-H", "Expect:", "-T", file)
            #expect(run.output.contains("HTTP/2 502") && run.output.contains("refused the stream"), "\(run)")
            #expect(try tries(shared, "/refused/1/x") == 1)
        }
    }

    /// Streams from before GOAWAY are answered; later ones use another connection.
    @Test func aConnectionThatIsLeavingFinishes() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            let held = try await client.request("GET", "/last/one")
            let origin = try #require(shared.origin)
            let first = try await origin.events.first("held")["connection"]
            #expect(try await client.get("/echo").head.status == 200)
            let second = origin.events.all("request").last?["connection"]
            #expect(second != first)
            #expect(try await client.get("/release/one").head.status == 200)
            #expect(try await client.body(held).text == "the last one\n")
            // It is closed after its last exchange.
            _ = try await origin.events.first("closed") { $0["connection"] == first }
        }
    }

    @Test(arguments: Crossing.bothToH2) func whoWantsHTTP1GetsIt(crossing: Crossing) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            for method in ["GET", "POST"] {
                let run = try await shared.curl(crossing, "/only-http1", "-X", method)
                let received = try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any]
                #expect(
                    received?["version"] as? String == "HTTP/1.1" && received?["method"] as? String == method, "\(run)")
            }
            // Other requests still use HTTP/2.
            #expect(try ReceivedRequest(await shared.curl(crossing, "/echo")).values(":method") == ["GET"])
        }
    }

    /// The origin asks for HTTP/1.1 but doesn't offer it.
    @Test func whoWantsHTTP1AndSpeaksItNotFails() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, origin: ["--protocols", "h2"])
            let run = try await shared.curl(.h2ToH2, "/only-http1", "-i")
            #expect(run.output.contains("HTTP/2 502"), "\(run)")
            #expect(try tries(shared, "/only-http1") <= 2)
            #expect(try await shared.curl(.h2ToH2, "/echo", "-f").succeeded)
        }
    }

    /// A request is not repeated once a response has begun, nor if the origin may have processed it.
    @Test func whatMayHaveBeenProcessedIsNotSentAgain() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            for path in ["/broken/0/INTERNAL_ERROR", "/broken/100/REFUSED_STREAM", "/broken/100/CANCEL", "/cut/100"] {
                let run = try await shared.curl(.h2ToH2, path, "-d", "a=b")
                #expect(!run.succeeded, "\(path): \(run)")
                #expect(try tries(shared, path) == 1, "\(path)")
            }
        }
    }
}

extension Crossing {
    static let bothToH2 = [Crossing.h1ToH2, .h2ToH2]
}
