import Foundation
import Testing

/// Attacks by an HTTP/2 client (RFC 9113 section 10.5), with honest clients alongside.
@Suite(.timeLimit(.minutes(10)))
struct HTTP2AttackTests {
    struct Attack: Sendable, CustomTestStringConvertible {
        /// How the connection ends.
        enum End: Sendable {
            /// With ENHANCE_YOUR_CALM, and a warning that names the flood.
            case flood(String)
            /// With a GOAWAY of this code, and a warning.
            case failure(String)
            /// Like any connection that is no longer needed.
            case calm
        }

        let name: String
        /// Nil: the connection stays in use.
        var end: End?
        /// Exactly the statuses that streams get.
        var statuses: Set<String>?
        var resets: Set<String> = []
        var timeouts: [String] = []
        var limits: [String] = []

        var testDescription: String { name }
    }

    private static let attacks = [
        Attack(name: "rapid-reset", end: .flood("resets")),
        Attack(name: "window-of-zero", end: .failure("PROTOCOL_ERROR")),
        Attack(name: "window-overflow", end: .flood("faults")),
        Attack(name: "data-after-the-end", end: .failure("STREAM_CLOSED")),
        Attack(name: "bodies-that-are-too-long", end: .flood("faults")),
        Attack(name: "bad-fields", end: .flood("faults")),
        Attack(name: "continuations", end: .flood("continuations")),
        Attack(name: "empty-continuations", end: .flood("continuations")),
        Attack(name: "settings", end: .flood("settings")), Attack(name: "empty-settings", end: .flood("settings")),
        Attack(name: "pings", end: .flood("pings")), Attack(name: "unread-pings", end: .flood("pings")),
        Attack(name: "empty-data", end: .flood("empty_data")), Attack(name: "padded-data", end: .flood("empty_data")),
        Attack(name: "priorities", end: .flood("priorities")),
        Attack(name: "priority-updates", end: .failure("PROTOCOL_ERROR")),
        Attack(name: "window-updates", end: .flood("window_updates")),
        Attack(name: "unknown-frames", end: .flood("ignored")),
        Attack(name: "goaways", end: .calm), Attack(name: "table-sizes", end: .flood("faults")),
        // What costs little, and what is refused one by one.
        Attack(name: "hpack-bomb", statuses: ["200"], resets: ["ENHANCE_YOUR_CALM"]),
        Attack(name: "long-heads", statuses: ["431"]),
        Attack(name: "too-many-fields", statuses: ["431"]),
        Attack(name: "too-many-streams", end: .failure("PROTOCOL_ERROR")),
        // What ends by time.
        Attack(name: "closed-windows", statuses: ["200"], resets: ["INTERNAL_ERROR"], timeouts: ["idle_client: 3s"]),
        Attack(name: "slow-bodies", limits: ["minimum_rate: 1KiB/2s"]),
    ]

    @Test(arguments: attacks) func anAttackCostsTheAttacker(attack: Attack) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, sections: ["proxy": ["workers: 1"], "timeouts": attack.timeouts, "limits": attack.limits])
            // Objects kept for connections of either kind exist.
            for crossing in Crossing.allCases {
                #expect(try await shared.curl(crossing, "/large/100000", "-o", "/dev/null").succeeded)
            }
            let before = try shared.proxy.ownMemory()
            let attacker = try await bed.start(
                [
                    PythonPeer.pythonWithPackages, "-u", PythonPeer.path("http2_attack.py"), "--proxy",
                    "\(shared.proxy.port)",
                    "--ca", shared.proxy.authority, "--authority", shared.authority(of: "h2.test"), attack.name,
                ], mergingErrors: true)
            let events = EventLog(lines: attacker.output)
            _ = try await events.first("attack")
            // Honest clients of both versions, on separate connections.
            for _ in 0..<3 {
                for crossing in Crossing.allCases {
                    let run = try await shared.curl(
                        crossing, "/large/100000", "-o", "/dev/null", "-w", "%{http_code} %{size_download}")
                    #expect(run.output == "200 100000", "\(run)")
                }
            }
            let over = try await events.first("over")
            #expect(over["ended"] == (attack.end == nil ? "0" : "1"), "\(over)")
            let told = try await warning(of: attack.end, as: over["code"], in: shared.proxy)
            // A client that sends on and on may lose the GOAWAY to a reset.
            #expect([told, "<null>"].contains(over["code"]), "\(over)")
            if !Sanitizer.isOn {
                let grown = try shared.proxy.ownMemory() - before
                #expect(grown < 64 << 20, "\(grown >> 20) MiB")
            }
            try check(try Self.details(over, in: attacker), attack)
            try await eventually("the tasks to end") { try await shared.tasks.list().isEmpty }
            #expect(shared.proxy.process.unaskedEnding == nil)
        }
    }

    /// - Returns: the code of the GOAWAY.
    /// - Parameter code: the GOAWAY code that the attacker got.
    private func warning(of end: Attack.End?, as code: String?, in proxy: ProxyProcess) async throws -> String {
        switch end {
        case .flood(let name):
            let event = try await proxy.events.first("connection.flood")
            #expect(event["flood"] == name && event["peer"] == "client", "\(event)")
            return "ENHANCE_YOUR_CALM"
        case .failure(let code):
            let event = try await proxy.events.first("connection.failed")
            #expect(event["code"] == code && event["peer"] == "client", "\(event)")
            return code
        // The first ends the connection, unless too many of them arrive together.
        case .calm where code == "ENHANCE_YOUR_CALM":
            return try await warning(of: .flood("settings"), as: code, in: proxy)
        case .calm, nil:
            #expect(proxy.events.all("connection.flood").isEmpty && proxy.events.all("connection.failed").isEmpty)
            return "NO_ERROR"
        }
    }

    private func check(_ details: Details, _ attack: Attack) throws {
        if let statuses = attack.statuses { #expect(Set(details.statuses.keys) == statuses, "\(details)") }
        if attack.end == nil {
            #expect(Set(details.resets.keys).subtracting(["NO_ERROR"]) == attack.resets, "\(details)")
        }
    }

    private struct Details: Decodable {
        let resets: [String: Int]
        let statuses: [String: Int]
    }

    private static func details(_ over: LogEvent, in process: ChildProcess) throws -> Details {
        let line = try #require(process.output.lines.first { $0.contains("\"over\"") })
        return try JSONDecoder().decode(Details.self, from: Data(line.utf8))
    }

    /// Bytes after a fatal frame are dropped, even those left after one read.
    @Test func moreFollowsAFailure() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            // All of it has arrived by the first read.
            shared.proxy.process.send(signal: SIGSTOP)
            // HEADERS with the index 0 (RFC 7541 section 6.1).
            try await client.raw("000001" + "01" + "05" + "00000001" + "80" + String(repeating: "00", count: 200_000))
            shared.proxy.process.send(signal: SIGCONT)
            #expect(try await client.goaways(1).first?.code == "COMPRESSION_ERROR")
            try await client.close()
            #expect(try await shared.curl(.h2ToH2, "/echo").succeeded)
            #expect(shared.proxy.process.unaskedEnding == nil)
        }
    }

    /// A client that reads nothing at all is disconnected when the time for a reader has passed.
    @Test func whoReadsNothingIsEnded() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["timeouts": ["idle_client: 2s"]])
            let attacker = try await bed.start(
                [
                    PythonPeer.pythonWithPackages, "-u", PythonPeer.path("http2_attack.py"), "--proxy",
                    "\(shared.proxy.port)",
                    "--ca", shared.proxy.authority, "--authority", shared.authority(of: "h2.test"), "unread-responses",
                ], mergingErrors: true)
            let over = try await EventLog(lines: attacker.output).first("over")
            #expect(over["ended"] == "1", "\(over)")
            try await eventually("the tasks to end") { try await shared.tasks.list().isEmpty }
            for line in shared.proxy.events.all("exchange") { #expect(line["cause"] != nil, "\(line)") }
            #expect(try await shared.curl(.h2ToH2, "/echo").succeeded)
        }
    }
}
