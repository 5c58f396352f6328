import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy lint` against the chains that real servers present.
@Suite(.timeLimit(.minutes(5)), .sharedBed(LintBed.prepare))
struct LintCommandTests {
    private struct Finding: Decodable {
        let rule: String
        let severity: String
        let entry: String?
        let message: String
    }

    private func lint(_ arguments: String...) async throws -> Run {
        let bed = try sharedBed().bed
        return try await bed.run(
            [ProxyProcess.executable, "lint", "--config", bed.path("proxy/pinproxy.yaml")] + arguments,
            environment: ProxyProcess.environment(in: bed))
    }

    private func findings(_ arguments: String...) async throws -> [Finding] {
        let bed = try sharedBed().bed
        let run = try await bed.run(
            [ProxyProcess.executable, "lint", "--json", "--config", bed.path("proxy/pinproxy.yaml")] + arguments,
            environment: ProxyProcess.environment(in: bed))
        guard run.succeeded else { throw TestBedError("\(run)") }
        return try JSONDecoder().decode([Finding].self, from: Data(run.output.utf8))
    }

    @Test func comparesEachPinWithTheLiveChain() async throws {
        let shared = try sharedBed()
        let found = try await findings()
        func rules(_ name: String) -> [String] {
            found.filter { $0.entry?.hasPrefix(name) == true }.map { "\($0.severity) \($0.rule)" }
        }
        #expect(rules("right.test") == [])
        #expect(rules("backup.test") == ["note pin-not-in-chain"])
        #expect(rules("wrong.test") == ["warning refused-now"])
        #expect(rules("report.test") == ["note report-only", "warning pin-mismatch"])
        #expect(
            rules("place.test") == [
                "warning refused-now", "warning pin-out-of-position", "warning pin-out-of-position",
            ])
        #expect(rules("nowhere.onion") == ["note not-checked"])
        #expect(rules("tunnel.test") == [])
        #expect(rules("listed.test") == ["note no-revocation-list"])
        #expect(rules("unlisted.test") == ["warning no-revocation-list"])
        #expect(rules("**.wild.test") == [])
        // Entries without pins still have requirements.
        #expect(rules("short.test") == ["warning refused-now"])
        #expect(rules("plain.test") == [])
        // A wildcard is checked through its recorded hosts.
        #expect(rules("*.seen.test") == ["warning refused-now"])
        let seen = found.first { $0.entry == "*.seen.test" }
        #expect(
            seen?.message.contains("a request to a.seen.test:\(shared.originPort) would be refused now") == true,
            "\(found)")
        let refused = found.first { $0.rule == "refused-now" && $0.entry?.hasPrefix("wrong") == true }
        #expect(try #require(refused).message.hasSuffix("Certificate pinning failure for wrong.test"))
    }

    /// `explain` says of the same list that it was of no use.
    @Test func aListOfAnotherIssuerIsNamed() async throws {
        let shared = try sharedBed()
        let unlisted = try await findings().filter { $0.rule == "no-revocation-list" && $0.severity == "warning" }
        #expect(
            unlisted.first?.message.hasSuffix(
                "crl_files has no list for CN=Test Intermediate, nor for CN=Test Root, in the chain of "
                    + "unlisted.test:\(shared.originPort): certificates revoked there are let through") == true)
        let run = try await shared.bed.run(
            [
                ProxyProcess.executable, "explain", "unlisted.test:\(shared.originPort)", "--config",
                shared.bed.path("proxy/pinproxy.yaml"),
            ], environment: ProxyProcess.environment(in: shared.bed))
        #expect(run.succeeded)
        #expect(
            run.output.contains(
                "skipped  revocation      no list of crl_files is for the chain, so nothing was checked"))
        #expect(run.output.contains("no list for CN=Test Intermediate: its certificates are not checked"))
    }

    @Test func saysWhatItDidNotLookAtIfAsked() async throws {
        let found = try await findings("--verbose")
        #expect(found.contains { $0.entry == "**.wild.test" && $0.rule == "not-checked" && $0.severity == "note" })
    }

    @Test func connectsToNobodyOffline() async throws {
        let found = try await findings("--offline")
        #expect(Set(found.map(\.rule)) == ["report-only"])
    }

    @Test func warnsOfWhatWillBeRefusedOnAnotherDay() async throws {
        let found = try await findings("--at", "2100-01-01")
        let right = found.filter { $0.entry?.hasPrefix("right.test") == true }
        #expect(right.contains { $0.rule == "refused-now" && $0.message.contains("expired") })
    }

    @Test func strictnessIsItsExitCode() async throws {
        #expect(try await lint("--strict").ending == .exited(1))
        #expect(try await lint().ending == .exited(0))
    }
}

private enum LintBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let names = [
            "right", "wrong", "report", "backup", "place", "short", "plain", "a.seen", "listed", "unlisted",
        ]
        var hosts: [String: String] = [:]
        for name in names { hosts["\(name).test"] = "127.0.0.1" }
        let roots = try TestRoots()
        let shared = try await OriginBed.prepare(bed, hosts: hosts, roots: roots)
        let day = RevocationListTemplate().with {
            $0.thisUpdate = TestRoots.now - 3600
            $0.nextUpdate = TestRoots.now + 86_400
        }
        try bed.file("proxy/issuer.crl", roots.intermediate.revocationList(day))
        try bed.file("proxy/stranger.crl", TestRoots("Strange").root.revocationList(day))
        // The pins are those of the chain that the origin presents.
        let pin = try await bed.run(
            [
                ProxyProcess.executable, "pin", "right.test:\(shared.originPort)", "--config",
                bed.path("proxy/pinproxy.yaml"),
            ], environment: ProxyProcess.environment(in: bed))
        let pins = pin.output.split(separator: "\n").filter { $0.contains("- sha256/") }.compactMap {
            $0.split(separator: " ").first { $0.hasPrefix("sha256/") }.map(String.init)
        }
        guard pins.count == 2 else { throw TestBedError("\(pin)") }
        func entry(_ name: String, _ pins: [String], _ more: String = "") -> String {
            "  - {match: \"\(name)\", pinning: public-key, pins: [\(pins.joined(separator: ", "))]\(more)}\n"
        }
        let other = "sha256/" + String(repeating: "B", count: 42) + "A="
        let port = shared.originPort
        try bed.file(
            "proxy/pins.yaml",
            "hosts:\n" + entry("right.test:\(port)", pins) + entry("backup.test:\(port)", [pins[0], other])
                + entry("wrong.test:\(port)", [.wrongPin, other])
                + entry("report.test:\(port)", [.wrongPin, other], ", enforcement: report")
                + entry("place.test:\(port)", pins, ", position: root") + entry("nowhere.onion", pins)
                + "  - {match: \"short.test:\(port)\", max_leaf_lifetime: 7d}\n"
                + "  - {match: \"plain.test:\(port)\", pinning: none}\n"
                + "  - {match: \"*.seen.test\", max_leaf_lifetime: 7d, record: true}\n"
                + entry("**.wild.test", pins) + "  - {match: tunnel.test, action: tunnel}\n"
                + "  - {match: \"listed.test:\(port)\", crl_files: [issuer.crl]}\n"
                + "  - {match: \"unlisted.test:\(port)\", crl_files: [stranger.crl]}\n")
        // As recorded by a proxy.
        try bed.file(
            "proxy/state/pinproxy/chains.json",
            "{\"hosts\": {\"a.seen.test:\(port)\": {\"name\": \"a.seen.test\", \"port\": \(port), \"chains\": []}}}\n")
        return shared
    }
}
