import Foundation
import PinproxyTestAuthority
import Testing

/// The counts of pins that the daemon keeps.
@Suite(.timeLimit(.minutes(5)))
struct PinHistoryTests {
    private struct History: Decodable {
        struct Entry: Decodable {
            struct Pin: Decodable {
                let matches: Int
                let first: Int64?
                let last: Int64?
                let removed: Int64?
            }
            let accepted: Int
            let misses: Int
            let lastMiss: Int64?
            let matchesSinceMiss: Int
            let pins: [String: Pin]
        }
        let entries: [String: Entry]
    }

    private func history(_ bed: TestBed) throws -> History {
        try JSONDecoder().decode(History.self, from: Data(bed.contents("proxy/state/pinproxy/pins.json").utf8))
    }

    private func entry(_ host: String, _ pins: [String], enforcement: String = "enforce") -> String {
        """
          - match: \(host)
            pinning: public-key
            pins: [\(pins.joined(separator: ", "))]
            enforcement: \(enforcement)

        """
    }

    @Test func countsVerificationsAndKeepsThemOverARestart() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("right.test", "wrong.test", "report.test")
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            let pin = try await leaf.pin(bed)
            let pins =
                "hosts:\n" + entry("right.test", [.wrongPin, pin]) + entry("wrong.test", [.wrongPin])
                + entry("report.test", [.wrongPin], enforcement: "report")
            let hosts = ["right.test", "wrong.test", "report.test"].reduce(into: [:]) { $0[$1] = "127.0.0.1" }
            let trust = try roots.write(to: bed)
            var proxy = try await ProxyProcess(in: bed, pins: pins, trust: trust, hosts: hosts)
            func get(_ host: String) async throws -> Run {
                // Three requests over one connection count as one verification.
                try await bed.curl(via: proxy, (1...3).map { "https://\(host):\(origin.port)/echo/\($0)" })
            }
            #expect(try await get("right.test").succeeded)
            #expect(try await !get("wrong.test").succeeded)
            #expect(try await get("report.test").succeeded)
            // A reload saves the counts so far.
            try await proxy.reload()
            var entries = try history(bed).entries
            let right = try #require(entries["right.test"])
            #expect(right.accepted == 1)
            #expect(right.misses == 0)
            #expect(right.pins[pin]?.matches == 1)
            #expect(abs((right.pins[pin]?.first ?? 0) - TestRoots.now) < 60)
            #expect(right.pins[.wrongPin]?.matches == 0)
            #expect(right.pins[.wrongPin]?.last == nil)
            // curl retries each URL after a refusal.
            #expect(entries["wrong.test"]?.misses == 3)
            #expect(entries["wrong.test"]?.accepted == 0)
            #expect(entries["report.test"]?.misses == 1)
            #expect(entries["report.test"]?.accepted == 0)

            let status = try await bed.run(
                [ProxyProcess.executable, "status", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(status.output.hasPrefix("running: process \(proxy.process.identifier)"), "\(status)")
            #expect(status.output.contains("right.test: 1 connection met a pin, 0 missed"), "\(status)")
            #expect(status.output.contains("\(pin): 1 match from"), "\(status)")
            #expect(status.output.contains("wrong.test: 0 connections met a pin, 3 missed"), "\(status)")

            // A removed pin keeps its count, with the time of its removal.
            try bed.file("proxy/pins.yaml", "hosts:\n" + entry("right.test", [pin]))
            try await proxy.reload()
            #expect(try await get("right.test").succeeded)
            proxy.process.send(signal: SIGTERM)
            _ = try await proxy.process.ending()
            entries = try history(bed).entries
            #expect(entries["right.test"]?.pins[.wrongPin]?.removed != nil)
            #expect(entries["right.test"]?.pins[pin]?.removed == nil)

            proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n" + entry("right.test", [pin]), trust: trust, hosts: hosts)
            #expect(try await get("right.test").succeeded)
            try await proxy.reload()
            let matches = try #require(try history(bed).entries["right.test"]?.pins[pin]?.matches)
            #expect(matches == entries["right.test"]!.pins[pin]!.matches + 1)
        }
    }

    /// The backup that `pinproxy pin` writes is the issuer's key: every chain meets it too.
    @Test func aBackupThatWouldMatchIsCountedToo() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("right.test")
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            let pins = [try await leaf.pin(bed), try await roots.intermediate.pin(bed)]
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n" + entry("right.test", pins + [.wrongPin]), trust: roots.write(to: bed),
                hosts: ["right.test": "127.0.0.1"])
            #expect(try await bed.curl(via: proxy, ["https://right.test:\(origin.port)/echo/1"]).succeeded)
            try await proxy.reload()
            let counted = try #require(try history(bed).entries["right.test"])
            #expect(pins.map { counted.pins[$0]?.matches } == [1, 1])
            #expect(counted.pins[.wrongPin]?.matches == 0)
            #expect(counted.accepted == 1)
        }
    }

    /// A resumed session presents no chain, but still counts under the earlier verdict.
    @Test func aResumedSessionCountsAsAVerification() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("right.test")
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            let pin = try await leaf.pin(bed)
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n" + entry("right.test", [pin]), trust: roots.write(to: bed),
                hosts: ["right.test": "127.0.0.1"])
            for _ in 1...2 {
                let run = try await bed.curl(via: proxy, ["https://right.test:\(origin.port)/close-when-idle"])
                #expect(run.output == "gone soon", "\(run)")
            }
            _ = try await origin.events.first("connection") { $0["resumed"] == "1" || $0["resumed"] == "true" }
            try await proxy.reload()
            #expect(try history(bed).entries["right.test"]?.pins[pin]?.matches == 2)
        }
    }

    @Test func aBrokenFileIsMovedAsideAndTheProxyStarts() async throws {
        try await withTestBed { bed in
            try bed.file("proxy/state/pinproxy/pins.json", "{\"entries\": 7")
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let event = try await proxy.events.first("state.broken")
            #expect(event["file"] == bed.path("proxy/state/pinproxy/pins.json"))
            #expect(try bed.contents("proxy/state/pinproxy/pins.json.broken") == "{\"entries\": 7")
        }
    }
}
