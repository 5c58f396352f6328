import Foundation
import PinproxySecurity
import PinproxyTLS
import Testing

@testable import PinproxyConfiguration

/// `enforce_from`, `enforce_after` and `stage` in pins.yaml.
@Suite struct RolloutTests {
    private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    private static let now: UnixTime = 1_800_000_000

    private func pins(_ keys: String) -> String {
        "hosts:\n- match: a.test\n  pinning: public-key\n  pins: [\(Self.pin)]\n  \(keys)\n"
    }

    private func rollout(_ keys: String) throws -> PinRollout? {
        try ConfigurationBed(pins: pins(keys)).load().entry(for: "a.test", port: 443)?.policy.rollout
    }

    private func condition(_ matches: Int, _ days: Int) -> PinRollout {
        .after(EnforcementCondition(matches: matches, days: days), enforcedSince: nil)
    }

    @Test func isRead() throws {
        let place = RolloutStage.ofThisMachine.place
        #expect(try rollout("enforcement: report\n  enforce_from: 2026-12-15") == .from(1_797_292_800))
        #expect(try rollout("enforcement: report\n  enforce_from: 2026-12-15T12:00:00Z") == .from(1_797_336_000))
        #expect(
            try rollout("enforcement: report\n  enforce_after: {matches: 100, days: 14}") == condition(100, 14))
        #expect(try rollout("enforcement: report\n  enforce_after: {matches: 1000000}") == condition(1_000_000, 0))
        #expect(try rollout("enforcement: report\n  enforce_after: {days: 3650}") == condition(1, 3650))
        #expect(try rollout("stage: 10%") == .stage(percent: 10, place: place))
        #expect(try rollout("enforcement: enforce\n  stage: 100") == .stage(percent: 100, place: place))
        #expect(try rollout("enforce_from: null\n  enforce_after: null\n  stage: null") == nil)
    }

    /// The keys below the pins, and the errors, each with line and column.
    @Test(arguments: [
        (
            "enforce_from: 2026-12-15",
            [
                "5:17: error: enforce_from: enforcement is enforce, from now on; write enforcement: "
                    + "report, which holds until then, or remove it"
            ]
        ),
        (
            "enforcement: enforce\n  enforce_after: {days: 1}",
            [
                "6:18: error: enforce_after: enforcement is enforce, from now on; write enforcement: "
                    + "report, which holds until then, or remove it"
            ]
        ),
        (
            "enforcement: report\n  stage: 10%",
            [
                "6:10: error: stage: enforcement is report, on all machines; write enforcement: "
                    + "enforce, which holds for the machines of the stage, or remove it"
            ]
        ),
        (
            "enforcement: report\n  enforce_from: 2026-12-15\n  enforce_after: {days: 1}",
            ["7:18: error: enforce_after: there is enforce_from too (line 6); write one of them"]
        ),
        (
            "enforcement: report\n  enforce_from: soon",
            [
                "6:17: error: enforce_from: \"soon\" is not a date; write it as 2027-06-30 (from the "
                    + "beginning of that day, UTC)"
            ]
        ),
        (
            "enforcement: report\n  enforce_after: 14d",
            ["6:18: error: \"enforce_after\" must be a mapping (key: value), not \"14d\""]
        ),
        (
            "enforcement: report\n  enforce_after: {}",
            ["6:18: error: enforce_after: write matches, days or both, e.g. {matches: 100, days: 14}"]
        ),
        (
            "enforcement: report\n  enforce_after: {matches: 0, days: 3651}",
            [
                "6:28: error: matches: 0 is out of range; write a number from 1 to 1000000",
                "6:37: error: days: 3651 is out of range; write a number from 0 to 3650",
            ]
        ),
        (
            "enforcement: report\n  enforce_after: {matches: 1000001, days: -1}",
            [
                "6:28: error: matches: 1000001 is out of range; write a number from 1 to 1000000",
                "6:43: error: days: -1 is out of range; write a number from 0 to 3650",
            ]
        ),
        (
            "enforcement: report\n  enforce_after: {match: 3, days: 1}",
            ["6:19: error: unknown key \"match\" in \"enforce_after\"; did you mean \"matches\"?"]
        ),
        ("stage: 0", ["5:10: error: stage: 0 is out of range; write a share from 1% to 100%"]),
        ("stage: 101%", ["5:10: error: stage: 101% is out of range; write a share from 1% to 100%"]),
        ("stage: -5", ["5:10: error: stage: \"-5\" is not a share of machines; write it as 10%"]),
        ("stage: 10.5%", ["5:10: error: stage: \"10.5%\" is not a share of machines; write it as 10%"]),
        ("stage: \"%\"", ["5:10: error: stage: \"%\" is not a share of machines; write it as 10%"]),
        (
            "stage: 99999999999999999999",
            ["5:10: error: stage: \"99999999999999999999\" is not a share of machines; write it as 10%"]
        ),
        (
            "allow_invalid_certificates: true\n  stage: 10%",
            [
                "6:10: error: stage: with allow_invalid_certificates the pins alone "
                    + "authenticate the server, so they are always enforced; remove it"
            ]
        ),
    ])
    func whatIsWrong(_ keys: String, _ expected: [String]) throws {
        let found = try ConfigurationBed(pins: pins(keys)).problems().filter { $0.contains(": error: ") }
        #expect(found == expected.map { "pins/hosts.yaml:\($0)" })
    }

    @Test(arguments: [
        ("enforcement: report, enforce_from: 2026-12-15", "enforce_from"), ("stage: 10%", "stage"),
        ("enforcement: report, enforce_after: {days: 1}, pinning: none", "enforce_after"),
    ])
    func withoutPins(_ keys: String, _ key: String) throws {
        let found = try ConfigurationBed(pins: "hosts: [{match: a.test, \(keys)}]\n").problems()
        #expect(found.count == 1)
        #expect(found.first?.contains(": error: \(key): there are no pins to enforce; add pinning and pins") == true)
    }

    @Test func whereNoPinsAreLookedAt() throws {
        let tunnel = try ConfigurationBed(pins: "hosts: [{match: a.test, action: tunnel, stage: 10%}]\n").problems()
        #expect(tunnel.first?.contains("error: stage can't be enforced with action: tunnel") == true)
        let denied = try ConfigurationBed(pins: "hosts: [{match: a.test, action: deny, stage: 10%}]\n").problems()
        #expect(denied.first?.contains("warning: stage has no effect: the host is denied") == true)
        let defaults = try ConfigurationBed(pins: "defaults: {stage: 10%}\nhosts: []\n").problems()
        #expect(defaults.first?.contains("error: unknown key \"stage\"") == true)
    }

    // MARK: Over time, and from the record

    @Test func theWarningSaysUntilWhen() throws {
        let snapshot = try ConfigurationBed(pins: pins("enforcement: report\n  enforce_from: 2026-12-15")).load()
        #expect(snapshot.warnings.isEmpty)
        let warning = snapshot.warnings(at: 1_797_292_799).map(\.message)
        #expect(
            warning == [
                "the pins are reported until 2026-12-15 (enforce_from): one that doesn't match is logged, not refused"
            ])
        #expect(snapshot.warnings(at: 1_797_292_800).isEmpty)
    }

    @Test func manyWarningsAreCounted() throws {
        let entries = (0..<(Findings.limit + 2)).map {
            "- {match: h\($0).test, pinning: public-key, pins: [\(Self.pin)], enforcement: report, "
                + "enforce_after: {days: 1}}\n"
        }
        let warnings = try ConfigurationBed(pins: "hosts:\n\(entries.joined())").load().warnings(at: Self.now)
        #expect(warnings.count == Findings.limit + 1)
        #expect(warnings.last?.message == "2 more entries only report for now")
    }

    private func keep(_ enforced: EnforcedEntries, in bed: ConfigurationBed) throws {
        try bed.write("state/enforced.json", Array(try JSONEncoder().encode(enforced)))
    }

    @Test func whatWasWrittenDownIsEnforced() throws {
        let bed = try ConfigurationBed(pins: pins("enforcement: report\n  enforce_after: {matches: 3}"))
        let before = try bed.load()
        let entry = try #require(before.entry(for: "a.test", port: 443))
        #expect(entry.policy.enforcement(at: Self.now) == .report)
        #expect(before.warnings(at: Self.now).count == 1)
        var enforced = EnforcedEntries()
        #expect(before.enforcing(enforced) == nil)
        _ = enforced.add("a.test", entry.policy, at: Self.now)
        try keep(enforced, in: bed)
        let after = try bed.load()
        #expect(after.entry(for: "a.test", port: 443)?.policy.enforcement(at: Self.now) == .enforce)
        #expect(after.entry(for: "a.test", port: 443)?.location == entry.location)
        #expect(after.warnings(at: Self.now).isEmpty)
        #expect(after.enforcing(enforced) == nil)
        #expect(after.digest == before.digest, "it is the same policy")
        // The running configuration reaches the same result.
        let renewed = try #require(before.enforcing(enforced))
        #expect(renewed.entry(for: "a.test", port: 443)?.policy.digest == after.hosts.values[0].policy.digest)
        // Another pin than before.
        let changed = pins("enforcement: report\n  enforce_after: {matches: 3}")
            .replacingOccurrences(of: "AAAA=", with: "AAAE=")
        try bed.write("pins/hosts.yaml", Array(changed.utf8))
        #expect(try bed.load().entry(for: "a.test", port: 443)?.policy.enforcement(at: Self.now) == .report)
    }

    @Test(arguments: ["{", "{\"entries\": 7}", ""])
    func aFileThatCannotBeReadIsAWarning(_ text: String) throws {
        let bed = try ConfigurationBed(pins: pins("enforcement: report\n  enforce_after: {matches: 3}"))
        try bed.write("state/enforced.json", Array(text.utf8))
        let snapshot = try bed.load()
        #expect(snapshot.entry(for: "a.test", port: 443)?.policy.enforcement(at: Self.now) == .report)
        #expect(snapshot.warnings.map(\.message).count { $0.contains("enforce_after are taken for reported") } == 1)
        // No entry needs the file.
        try bed.write("pins/hosts.yaml", Array("hosts: []\n".utf8))
        #expect(try bed.load().warnings.isEmpty)
    }
}
