import Foundation
import Testing

/// What a client of HTTP/2 can do to a server (RFC 9113 section 10.5), with honest clients beside it.
@Suite(.timeLimit(.minutes(10)))
struct HTTP2AttackTests {
    struct Attack: Sendable, CustomTestStringConvertible {
        let name: String
        /// The code of the GOAWAY with which it ends; nil: the connection serves on.
        var code: String? = "ENHANCE_YOUR_CALM"
        /// Words of its text.
        var words = ""
        /// What streams get, and no others do.
        var statuses: Set<String>?
        var resets: Set<String> = []
        var timeouts: [String] = []

        var testDescription: String { name }
    }

    private static let attacks = [
        Attack(name: "rapid-reset", words: "too many streams are reset", resets: ["REFUSED_STREAM"]),
        Attack(name: "window-of-zero", words: "too many streams are malformed", resets: ["PROTOCOL_ERROR", "REFUSED_STREAM"]),
        Attack(name: "window-overflow", words: "too many streams are malformed", resets: ["FLOW_CONTROL_ERROR", "REFUSED_STREAM"]),
        Attack(name: "own-dependency", words: ""),
        Attack(name: "data-after-the-end", words: "", resets: ["STREAM_CLOSED", "REFUSED_STREAM"]),
        Attack(name: "bodies-that-are-too-long", words: "too many streams are malformed", resets: ["PROTOCOL_ERROR", "REFUSED_STREAM"]),
        Attack(name: "bad-fields", words: "too many streams are malformed", resets: ["PROTOCOL_ERROR", "REFUSED_STREAM"]),
        Attack(name: "continuations", words: "CONTINUATION"),
        Attack(name: "empty-continuations", words: "CONTINUATION"),
        Attack(name: "settings", words: "SETTINGS"), Attack(name: "empty-settings", words: "SETTINGS"),
        Attack(name: "pings", words: "PING"), Attack(name: "unread-pings"),
        Attack(name: "empty-data", words: "empty DATA"), Attack(name: "padded-data"),
        Attack(name: "priorities", words: "PRIORITY"), Attack(name: "priority-updates", words: "PRIORITY"),
        Attack(name: "window-updates", words: "WINDOW_UPDATE"), Attack(name: "unknown-frames", words: "unknown types"),
        Attack(name: "goaways", words: "GOAWAY"), Attack(name: "table-sizes"),
        // What costs little, and what is refused one by one.
        Attack(name: "hpack-bomb", code: nil, statuses: ["200", "431"]), Attack(name: "long-heads", code: nil, statuses: ["431"]),
        Attack(name: "too-many-fields", code: nil, statuses: ["431"]),
        Attack(name: "too-many-streams", code: nil, statuses: ["200"], resets: ["REFUSED_STREAM"]),
        // What ends by time.
        Attack(name: "closed-windows", code: nil, statuses: ["200"], resets: ["INTERNAL_ERROR"], timeouts: ["idle_client: 3s"]),
        Attack(name: "slow-bodies", code: nil, timeouts: ["idle_client: 3s"]),
    ]

    @Test(arguments: attacks) func anAttackCostsTheAttacker(attack: Attack) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["proxy": ["workers: 1"], "timeouts": attack.timeouts])
            // What is kept for connections of either kind is there.
            for crossing in Crossing.allCases { #expect(try await shared.curl(crossing, "/large/100000", "-o", "/dev/null").succeeded) }
            let before = try shared.proxy.ownMemory()
            let attacker = try await bed.start(
                [
                    PythonPeer.pythonWithPackages, "-u", PythonPeer.path("http2_attack.py"), "--proxy", "\(shared.proxy.port)",
                    "--ca", shared.proxy.authority, "--authority", shared.authority(of: "h2.test"), attack.name,
                ], mergingErrors: true)
            let events = EventLog(lines: attacker.output)
            _ = try await events.first("attack")
            // Honest clients, of both versions, on connections of their own.
            for _ in 0..<3 {
                for crossing in Crossing.allCases {
                    let run = try await shared.curl(crossing, "/large/100000", "-o", "/dev/null", "-w", "%{http_code} %{size_download}")
                    #expect(run.output == "200 100000", "\(run)")
                }
            }
            let over = try await events.first("over")
            #expect(over["code"] == attack.code ?? "<null>", "\(over)")
            #expect(over["ended"] == (attack.code == nil ? "0" : "1"), "\(over)")
            #expect(over["text"]?.contains(attack.words) == true, "\(over)")
            if !Sanitizer.isOn {
                let grown = try shared.proxy.ownMemory() - before
                #expect(grown < 64 << 20, "\(grown >> 20) MiB")
            }
            try check(try Self.details(over, in: attacker), attack)
            try await eventually("the tasks to end") { try await shared.tasks.list().isEmpty }
            #expect(shared.proxy.process.unaskedEnding == nil)
        }
    }

    private func check(_ details: Details, _ attack: Attack) throws {
        if let statuses = attack.statuses { #expect(Set(details.statuses.keys) == statuses, "\(details)") }
        if attack.code == nil { #expect(Set(details.resets.keys) == attack.resets, "\(details)") }
    }

    private struct Details: Decodable {
        let resets: [String: Int]
        let statuses: [String: Int]
    }

    private static func details(_ over: LogEvent, in process: ChildProcess) throws -> Details {
        let line = try #require(process.output.lines.first { $0.contains("\"over\"") })
        return try JSONDecoder().decode(Details.self, from: Data(line.utf8))
    }

    /// It reads nothing at all: the connection ends when the time for a reader has passed.
    @Test func whoReadsNothingIsEnded() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["timeouts": ["idle_client: 2s"]])
            let attacker = try await bed.start(
                [
                    PythonPeer.pythonWithPackages, "-u", PythonPeer.path("http2_attack.py"), "--proxy", "\(shared.proxy.port)",
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
