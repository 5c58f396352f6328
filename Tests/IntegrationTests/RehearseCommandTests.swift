import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy bundle rehearse` on a machine with nginx as the API, before a proxy runs there and while it does.
@Suite(.timeLimit(.minutes(5)))
struct RehearseCommandTests {
    private struct Report: Decodable {
        struct Refused: Decodable {
            struct Entry: Decodable {
                let pattern: String
                let file: String
                let line: Int
            }
            let host: String
            let cause: String
            let entry: Entry?
            let new: Bool?
        }
        struct Unreachable: Decodable {
            let host: String
            let cause: String
        }
        struct Finding: Decodable { let rule: String }

        let version: Int
        let verified: Bool
        let hosts: Int
        let refused: [Refused]
        let unreachable: [Unreachable]
        let left_out: Int
        let remarks: [String]
        let findings: [Finding]

        init(_ run: Run) throws {
            self = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8))
        }
    }

    private func configure(
        _ bed: SignedPolicyBed, own: String = "hosts: []\n", _ more: String..., sections: ProxyProcess.Sections = [:]
    ) throws {
        try ProxyProcess.write(
            to: bed.bed, folder: "proxy", pins: own, trust: bed.trust,
            sections: bed.lines(more).merging(sections) { $1 })
        let names = [SignedPolicyBed.server, SignedPolicyBed.api, "more.test", "other.test", "silent.test"]
        try bed.bed.file("proxy/hosts", names.map { "127.0.0.1 \($0)\n" }.joined())
    }

    private func rehearse(_ bed: SignedPolicyBed, _ more: String...) async throws -> Run {
        try await bed.bed.run(
            [
                ProxyProcess.executable, "bundle", "rehearse", bed.file, "--config",
                bed.bed.path("proxy/pinproxy.yaml"),
            ] + more, environment: ProxyProcess.environment(in: bed.bed))
    }

    private func entry(_ bed: SignedPolicyBed, _ pin: String, _ more: String = "") -> String {
        "hosts:\n  - {match: \"api.test:\(bed.origin.port)\", pinning: public-key, pins: [\"\(pin)\"]\(more)}\n"
    }

    /// Hosts of the API's server as recorded by the proxy, with the days since they were last seen.
    private func record(_ hosts: [(name: String, days: Int64)], _ bed: SignedPolicyBed) throws {
        let entries = hosts.map { host in
            let time = TestRoots.now - host.days * 86_400
            return """
                "\(host.name):\(bed.origin.port)": {"name": "\(host.name)", "port": \(bed.origin.port), \
                "chains": [{"links": [], "count": 1, "first": \(time), "last": \(time)}]}
                """
        }
        try bed.bed.file(
            "proxy/state/pinproxy/chains.json", "{\"hosts\": {\(entries.joined(separator: ", "))}}", mode: 0o600)
    }

    @Test func whatIsAcceptedIsCounted() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try configure(bed)
            try await bed.sign(entry(bed, try await bed.apiPin()), "--note", "right")
            let run = try await rehearse(bed)
            #expect(run.succeeded && run.output.hasPrefix("none of 2 hosts would be refused\n"), "\(run)")
            // Its lines are linted.
            #expect(run.output.contains("bundle:/pins.yaml:2:") && run.output.contains("[no-backup]"), "\(run)")
            let report = try Report(try await rehearse(bed, "--json"))
            #expect(report.version == 1 && report.verified && report.hosts == 2 && report.refused.isEmpty)
            #expect(report.findings.contains { $0.rule == "no-backup" } && report.remarks.isEmpty)
        }
    }

    /// The running proxy keeps its policy.
    @Test func whatWouldBeRefusedIsNamed() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try await bed.sign(entry(bed, try await bed.apiPin()))
            let old = try Data(contentsOf: URL(fileURLWithPath: bed.file))
            try bed.serve()
            let proxy = try await bed.proxy()
            _ = try await proxy.events.first("policy.accepted")
            #expect(try await bed.api(proxy) == 200)

            try await bed.sign(entry(bed, .wrongPin))
            let run = try await rehearse(bed)
            #expect(run.ending == .exited(1), "\(run)")
            #expect(
                run.output.hasPrefix(
                    """
                    1 of 2 hosts would be refused
                      api.test:\(bed.origin.port): 502 Certificate pinning failure for api.test
                        by bundle:/pins.yaml:2: match: api.test:\(bed.origin.port); accepted by what is in force

                    """), "\(run)")
            #expect(!run.output.contains("[refused-now]"), "said by the host: \(run)")
            let refused = try Report(try await rehearse(bed, "--json")).refused.first
            #expect(refused?.host == "api.test" && refused?.new == true && refused?.entry?.line == 2)
            #expect(try await bed.api(proxy) == 200)
            #expect(proxy.events.all("policy.accepted").count == 1)

            // By the policy that the machine has accepted, not just by the keys.
            try await bed.sign(entry(bed, .wrongPin, ", enforcement: report"))
            try bed.serve()
            try await bed.look(proxy, "hosts: []\n", "groups: [a]")
            _ = try await proxy.events.first("policy.accepted") { $0["version"] == "3" }
            let reported = try await rehearse(bed)
            #expect(reported.succeeded && reported.output.contains("[pin-mismatch]"), "\(reported)")
            try old.write(to: URL(fileURLWithPath: bed.file))
            let older = try await rehearse(bed)
            #expect(older.ending == .exited(1) && older.errors.contains("older than version"), "\(older)")
        }
    }

    @Test func whatIsRefusedAlreadyIsNothingNew() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try configure(bed, own: "hosts:\n  - {match: \"api.test:\(bed.origin.port)\", action: deny}\n")
            try await bed.sign(entry(bed, .wrongPin))
            let run = try await rehearse(bed)
            #expect(run.succeeded && run.output.hasPrefix("1 of 2 hosts would be refused\n"), "\(run)")
            #expect(run.output.contains("proxy/pins.yaml:2: match: api.test:\(bed.origin.port); refused by"), "\(run)")
            let refused = try Report(try await rehearse(bed, "--json")).refused
            #expect(refused.map(\.new) == [false] && refused.first?.cause.hasPrefix("403 ") == true)
        }
    }

    @Test func hostsThatCannotBeReachedAreNotKnown() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            let silent = try await PythonPeer.silent(until: .accept, in: bed.bed)
            try configure(bed, sections: ["timeouts": ["tls_handshake: 1s"]])
            try await bed.sign(
                """
                hosts:
                  - {match: "api.test:1", pinning: public-key, pins: [\(String.wrongPin)]}
                  - {match: "silent.test:\(silent.port)", pinning: public-key, pins: [\(String.wrongPin)]}

                """)
            let run = try await rehearse(bed)
            #expect(run.succeeded && run.output.hasPrefix("none of 3 hosts would be refused\n"), "\(run)")
            #expect(run.output.contains("\nnot reachable, so not known: 2 hosts\n  api.test:1: "), "\(run)")
            let report = try Report(try await rehearse(bed, "--json"))
            #expect(report.unreachable.map(\.host) == ["api.test", "silent.test"], "\(report)")
        }
    }

    @Test func aDraftIsTriedOnlyWhereThatIsAskedFor() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try configure(bed)
            try await bed.make(
                "create", bed.file, "--pins", try bed.bed.file("policy/pins.yaml", entry(bed, .wrongPin)),
                "--expires", "90d", "--group", "servers", "--stage", "1")
            let refused = try await rehearse(bed)
            #expect(refused.ending == .exited(1) && refused.output.isEmpty, "\(refused)")
            #expect(refused.errors.contains("the file has no timestamp"), "\(refused)")
            let run = try await rehearse(bed, "--unsigned")
            #expect(run.ending == .exited(1) && run.output.hasPrefix("1 of 2 hosts would be refused\n"), "\(run)")
            #expect(run.output.contains("remark: bundle version 1 is for the groups servers"), "\(run)")
            #expect(try Report(try await rehearse(bed, "--unsigned", "--json")).verified == false)
        }
    }

    @Test func whatTheMachineMayNotSayIsAnError() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try configure(bed, own: "hosts:\n  - {match: \"api.test:\(bed.origin.port)\", pinning: none}\n")
            try await bed.sign(entry(bed, try await bed.apiPin()))
            let conflict = try await rehearse(bed)
            #expect(conflict.ending == .exited(78) && conflict.output.isEmpty, "\(conflict)")
            #expect(
                conflict.errors.contains("proxy/pins.yaml:2:") && conflict.errors.contains("bundle:/pins.yaml:2"),
                "\(conflict)")

            try ProxyProcess.write(to: bed.bed, folder: "proxy", pins: "hosts: []\n", trust: bed.trust)
            let none = try await rehearse(bed)
            #expect(none.ending == .exited(78) && none.errors.contains("policy isn't set there"), "\(none)")
        }
    }

    @Test func theHostsAreBounded() async throws {
        try await withTestBed { bed in
            let bed = try await SignedPolicyBed(bed)
            try configure(bed)
            try record([("api.test", 1), ("more.test", 2), ("other.test", 40), ("pinproxy.test", 1)], bed)
            try await bed.sign(
                "hosts:\n  - {match: \"**.test\", action: deny}\n  - {match: gone.invalid, pinning: none}\n")
            func report(_ more: String...) async throws -> Report {
                let run = try await bed.bed.run(
                    [
                        ProxyProcess.executable, "bundle", "rehearse", bed.file, "--json", "--config",
                        bed.bed.path("proxy/pinproxy.yaml"),
                    ] + more, environment: ProxyProcess.environment(in: bed.bed))
                return try Report(run)
            }
            let usual = try await report()
            // The policy server comes first: without it a policy can't be rolled back.
            #expect(usual.refused.map(\.host) == ["policy.test", "api.test", "more.test"], "\(usual)")
            // nginx has certificates for two of them.
            #expect(usual.refused.map(\.new) == [true, true, false])
            #expect(usual.hosts == 4 && usual.left_out == 0 && usual.unreachable.map(\.host) == ["gone.invalid"])
            #expect(try await report("--days", "90").refused.count == 4)
            let few = try await report("--max-hosts", "1")
            #expect(few.hosts == 1 && few.left_out == 3 && few.refused.map(\.host) == ["policy.test"])
            for words in [["--days", "0"], ["--days", "91"], ["--max-hosts", "0"], ["--max-hosts", "10001"]] {
                let run = try await rehearse(bed, words[0], words[1])
                #expect(run.ending == .exited(2) && run.errors.contains(words[0]), "\(run)")
            }
        }
    }
}
