import Foundation
import Testing

/// SIGTERM: new clients are refused, and requests in flight finish within a time limit.
@Suite(.timeLimit(.minutes(5)))
struct ShutdownTests {
    private func refusesClients(_ proxy: ProxyProcess) -> Bool {
        (try? RawConnection(to: proxy)) == nil
    }

    @Test func whatIsInFlightIsFinished() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await shared.holdingClient()
            shared.proxy.process.send(signal: SIGTERM)
            try await eventually("the port to be closed") { refusesClients(shared.proxy) }
            try await shared.release()
            #expect(try await client.ending() == .exited(0))
            #expect(await client.output.text == "first,second")
            #expect(try await shared.proxy.process.ending() == .exited(0))
            #expect(shared.proxy.events.all("proxy.stop").count == 1)
        }
    }

    @Test func aSecondSignalEndsAtOnce() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["timeouts": ["drain: 10m"]])
            let client = try await shared.holdingClient()
            shared.proxy.process.send(signal: SIGTERM)
            try await eventually("the port to be closed") { refusesClients(shared.proxy) }
            shared.proxy.process.send(signal: SIGTERM)
            _ = try await shared.proxy.process.ending()
            #expect(try await client.ending() != .exited(0))
        }
    }

    @Test func theDrainHasABound() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["timeouts": ["drain: 200ms"]])
            let client = try await shared.holdingClient()
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await shared.proxy.process.ending() == .exited(0))
            // The client must notice that its response is incomplete.
            #expect(try await client.ending() != .exited(0))
        }
    }

    @Test func nothingUnderLoadIsCutShort() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await bed.start(
                [
                    "curl", "-s", "--parallel", "--parallel-max", "8", "-o", "/dev/null", "-w",
                    "%{http_code} %{size_download} %{exitcode} %{url_effective}\\n",
                    "\(shared.url)/large/[200000-200999]",
                ], environment: shared.proxy.clientEnvironment)
            _ = try await client.output.first(awaiting: "the first answers") { $0.hasPrefix("200 ") ? $0 : nil }
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await shared.proxy.process.ending() == .exited(0))
            _ = try await client.ending()
            for line in await client.output.text.split(separator: "\n") {
                let parts = line.split(separator: " ")
                let wanted = parts[3].split(separator: "/").last ?? ""
                // Whole, or never begun.
                let isWhole = parts[0] == "200" && parts[1] == wanted && parts[2] == "0"
                let neverBegan = parts[0] == "000" && parts[1] == "0"
                #expect(isWhole || neverBegan, "\(line)")
            }
        }
    }

    /// A tunnel has no known end, so an idle one is closed and holds nothing up.
    @Test(arguments: ["tunnel", "verify-tunnel", "intercept"])
    func idleTunnelsDoNotDelayTheEnd(action: String) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, pins: "defaults: {action: \(action)}\n",
                sections: ["timeouts": ["drain: 10m", "drain_tunnels: 50ms"]])
            let idle = try RawConnection(to: shared.proxy)
            try await idle.send("CONNECT \(shared.authority) HTTP/1.1\r\nHost: \(shared.authority)\r\n\r\n")
            #expect(try await idle.response().status == 200)
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await shared.proxy.process.ending() == .exited(0))
            let line = try await shared.proxy.events.first("exchange")
            #expect(line["cause"] == "the proxy was stopped", "\(line)")
        }
    }

    /// A tunnel in use stays open until no bytes move.
    @Test func aTunnelInUseIsLeftToIt() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, pins: "defaults: {action: tunnel}\n", sections: ["timeouts": ["drain: 10m", "drain_tunnels: 1s"]])
            let size = 40_000_000
            let client = try await bed.start(
                [
                    "curl", "-sS", "--cacert", bed.path("roots.pem"), "--limit-rate", "20M", "-o", "/dev/null", "-w",
                    "%{size_download}\\n", "\(shared.url)/large/\(size)",
                ], environment: ["HTTPS_PROXY": shared.proxy.url])
            _ = try await #require(shared.origin).events.first("request")
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await shared.proxy.process.ending() == .exited(0))
            #expect(try await client.ending() == .exited(0))
            #expect(await client.output.text.contains("\(size)"))
        }
    }

    /// A stop changes no policy: a request that waits for its turn (`session.max_active`) still gets it.
    @Test func whoWaitsForATurnIsServed() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, pins: "hosts:\n  - {match: \(OriginBed.name), session: {max_active: 1}}\n",
                sections: ["timeouts": ["drain: 10m"]])
            let first = try await shared.holdingClient()
            let second = try await bed.start(
                ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "\(shared.url)/echo"],
                environment: shared.proxy.clientEnvironment)
            try await eventually("the second to wait for its turn") {
                try await shared.tasks.list().contains { $0.phase == "waiting for its turn" }
            }
            shared.proxy.process.send(signal: SIGTERM)
            try await eventually("the port to be closed") { refusesClients(shared.proxy) }
            try await shared.release()
            #expect(try await first.ending() == .exited(0))
            #expect(try await second.ending() == .exited(0))
            #expect(await second.output.text == "200")
            #expect(try await shared.proxy.process.ending() == .exited(0))
        }
    }

    /// A download that is interrupted meanwhile (`session.resume`) is resumed.
    @Test func anInterruptedDownloadIsContinued() async throws {
        try await withTestBed { bed in
            let shared = try await DownloadBed.prepare(bed)
            let length = 2_000_000
            let client = try await bed.start(
                [
                    "curl", "-sS", "-o", bed.path("download"), "-w", "%{http_code} %{size_download}",
                    "https://breaking.test:\(shared.originPort)/postponed/600000/\(length)/stopped",
                ], environment: shared.proxy.clientEnvironment)
            // The origin asks the proxy to retry after a second.
            _ = try await shared.proxy.events.first("download.resume") { $0["cause"]?.contains("503") == true }
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await client.ending() == .exited(0))
            #expect(await client.output.text == "200 \(length)")
            #expect(try await shared.proxy.process.ending() == .exited(0))
        }
    }

    @Test func anIdleProxyEndsAtOnce() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["timeouts": ["drain: 10m"]])
            // An idle client and an idle upstream connection hold nothing up.
            let idle = try RawConnection(to: shared.proxy)
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await shared.proxy.process.ending() == .exited(0))
            #expect(try await idle.receiveAll().isEmpty)
        }
    }
}
