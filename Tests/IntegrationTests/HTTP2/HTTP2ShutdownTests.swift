import Foundation
import Testing

/// How HTTP/2 connections end: by SIGTERM, by a handover, by a timeout.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2ShutdownTests {
    private static let launcher = ["/bin/sh", "-c", "exec \"$@\" --handover", "sh"]
    /// 2^31 - 1: the last stream of a GOAWAY that forbids none yet.
    private static let any = 0x7FFF_FFFF

    /// The first GOAWAY admits requests on their way; the second names the last one served (RFC 9113 section 6.8).
    @Test(arguments: [false, true]) func theClientIsToldTwice(byHandover: Bool) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, launcher: byHandover ? Self.launcher : [])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            let held = try await client.request("GET", "/hold/drain")
            #expect(try await client.head(held).status == 200)
            shared.proxy.process.send(signal: SIGTERM)
            let first = try await client.goaways(1)
            #expect(first.first.map { $0.last == Self.any && $0.code == "NO_ERROR" } == true, "\(first)")
            // A request that the client sent before it knew.
            let late = try await client.request("GET", "/release/drain")
            #expect(try await client.head(late).status == 200)
            #expect(try await client.body(held).text == "first,second")
            let both = try await client.goaways(2)
            #expect(both.last?.last == late && both.last?.code == "NO_ERROR", "\(both)")
            try await client.closed()
            #expect(try await shared.proxy.process.ending() == .exited(0))
            #expect(shared.proxy.events.all("exchange").count { $0["status"] == "200" && $0["cause"] == nil } == 2)
            if byHandover { _ = try await shared.proxy.events.first("proxy.stop") }
        }
    }

    /// A client with nothing in flight delays nothing.
    @Test func anIdleClientEnds() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["timeouts": ["drain: 10m"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            #expect(try await client.get("/echo").head.status == 200)
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await shared.proxy.process.ending() == .exited(0))
            try await client.closed()
            #expect(try await client.goaways(2).count == 2)
        }
    }

    @Test func theDrainHasABound() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["timeouts": ["drain: 200ms"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            let held = try await client.request("GET", "/hold/bound")
            #expect(try await client.head(held).status == 200)
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await shared.proxy.process.ending() == .exited(0))
            let body = try await client.body(held)
            #expect(body.ended == false && (body.reset != nil || body.isClosed == true), "\(body)")
        }
    }

    /// Programs that understand GOAWAY lose nothing.
    @Test func nothingUnderLoadIsCutShort() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let client = try await bed.start(
                [
                    "curl", "-s", "--http2", "--parallel", "--parallel-max", "8", "-o", "/dev/null", "-w",
                    "%{http_code} %{size_download} %{exitcode} %{url_effective}\\n",
                    shared.url(.h2ToH2, "/large/[200000-200499]"),
                ], environment: shared.proxy.clientEnvironment)
            _ = try await client.output.first(awaiting: "the first answers") { $0.hasPrefix("200 ") ? $0 : nil }
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await shared.proxy.process.ending() == .exited(0))
            _ = try await client.ending()
            for line in await client.output.text.split(separator: "\n") {
                let parts = line.split(separator: " ")
                let wanted = parts[3].split(separator: "/").last ?? ""
                let isWhole = parts[0] == "200" && parts[1] == wanted && parts[2] == "0"
                let neverBegan = parts[0] == "000" && parts[1] == "0"
                #expect(isWhole || neverBegan, "\(line)")
            }
        }
    }

    // MARK: Time

    @Test func anIdleClientIsClosed() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["timeouts": ["idle_client: 4s"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            #expect(try await client.get("/echo").head.status == 200)
            try await client.closed()
            #expect(try await client.goaways(1).last?.code == "NO_ERROR")
        }
    }

    /// PINGs don't keep a connection open; requests do.
    @Test func whoOnlyPingsIsIdle() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["timeouts": ["idle_client: 1s"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            var count = 0
            while try await client.ping().isClosed != true {
                count += 1
                try #require(count < 1_000_000)
            }
            try await client.closed()
        }
    }

    @Test func anIdleUpstreamIsClosed() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["timeouts": ["idle_upstream: 500ms"]])
            #expect(try await shared.curl(.h2ToH2, "/echo").succeeded)
            let goaway = try await #require(shared.origin).events.first("goaway")
            #expect(goaway["code"] == "0", "\(goaway)")
            _ = try await #require(shared.origin).events.first("closed")
        }
    }
}
