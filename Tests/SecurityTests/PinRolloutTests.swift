import Foundation
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

/// Pins that are enforced from a date, by evidence, or on some machines.
@Suite struct PinRolloutTests {
    private static let now = Chains.now
    private static let condition = EnforcementCondition(matches: 100, days: 14)

    private func policy(
        _ rollout: PinRollout?, _ enforcement: Enforcement = .report, pins: [Pin]? = nil, position: PinPosition = .any,
        mode: PinningMode = .publicKey, invalid: Bool = false, expiry: PinExpiry? = nil
    ) throws -> SecurityPolicy {
        SecurityPolicy(
            mode: mode, pins: PinSet(try pins ?? [Pin(text: wrongPin, for: .publicKey)]),
            allowsInvalidCertificates: invalid, position: position, enforcement: enforcement,
            requirements: TrustRequirements(), expiry: expiry, rollout: rollout)
    }

    private func judge(_ policy: SecurityPolicy, at time: UnixTime = now) throws -> Verdict {
        let chains = try Chains()
        return policy.evaluate(try chains.presented, host: Chains.host, anchors: try chains.anchors, at: time)
    }

    @Test(arguments: [
        (PinRollout.from(now + 1), false), (.from(now), true), (.from(now - 1), true),
        (.after(condition, enforcedSince: nil), false), (.after(condition, enforcedSince: now), true),
        // The clock was set back since then, and it is still enforced.
        (.after(condition, enforcedSince: now + 1), true),
        (.stage(percent: 10, place: 10), false), (.stage(percent: 10, place: 9), true),
        (.stage(percent: 100, place: 99), true), (.stage(percent: 1, place: 0), true),
    ])
    func aWrongPin(_ rollout: PinRollout, _ isEnforced: Bool) throws {
        for enforcement in [Enforcement.report, .enforce] {
            let verdict = try judge(policy(rollout, enforcement))
            #expect(verdict.isAccepted == !isEnforced)
            #expect((verdict.report != nil) == !isEnforced)
        }
        #expect(rollout.text(at: Self.now).hasPrefix(isEnforced ? "enforced " : "reported "))
    }

    /// A mismatch let through before the date isn't reused after it; a match is.
    @Test func aReportEndsWithTheDate() throws {
        #expect(try judge(policy(.from(Self.now + 60))).validUntil == Self.now + 60)
        let chains = try Chains()
        let right = try policy(.from(Self.now + 60), pins: [try chains.leaf.keyPin()])
        let verdict = right.evaluate(
            try chains.presented, host: Chains.host, anchors: try chains.anchors, at: Self.now)
        #expect(verdict.matchedPin != nil)
        #expect(verdict.validUntil > Self.now + 60)
    }

    @Test func pinsThatExpireAreReportedAgain() throws {
        let expiry = PinExpiry(date: Self.now, action: .report)
        let policy = try policy(.from(Self.now - 10), expiry: expiry)
        #expect(try !judge(policy, at: Self.now - 1).isAccepted)
        #expect(try judge(policy).report != nil)
        #expect(!policy.onlyReports(at: Self.now))
    }

    @Test func withInvalidCertificatesThePinsStayEnforced() throws {
        #expect(try !judge(policy(.from(Self.now + 10), invalid: true)).isAccepted)
    }

    @Test func policiesThatDecideOtherwiseAreToldApart() throws {
        let rollouts: [PinRollout?] = [
            nil, .from(1), .from(2), .after(Self.condition, enforcedSince: nil),
            .after(Self.condition, enforcedSince: 1), .stage(percent: 10, place: 3), .stage(percent: 10, place: 30),
        ]
        #expect(Set(try rollouts.map { try policy($0).digest }).count == rollouts.count)
        let later = try policy(.after(Self.condition, enforcedSince: 2))
        #expect(try policy(.after(Self.condition, enforcedSince: 1)).digest == later.digest)
        // Reloaded revocation lists don't change it.
        #expect(later.replacing(TrustRequirements()).rollout == later.rollout)
    }

    @Test func onlyWhatWaitsIsEnforced() throws {
        let waiting = try policy(.after(Self.condition, enforcedSince: nil))
        let enforced = try #require(waiting.enforced(since: Self.now))
        #expect(enforced.rollout == .after(Self.condition, enforcedSince: Self.now))
        #expect(try !judge(enforced).isAccepted)
        #expect(enforced.enforced(since: 1) == nil)
        #expect(try policy(.from(1)).enforced(since: 1) == nil)
        #expect(try policy(nil).enforced(since: 1) == nil)
    }

    @Test(arguments: [
        (PinRollout.from(1), PinRollout.from(1), true), (.from(1), .from(2), true), (.from(2), .from(1), false),
        (.after(condition, enforcedSince: nil), .after(condition, enforcedSince: 1), true),
        (
            .after(EnforcementCondition(matches: 99, days: 14), enforcedSince: nil),
            .after(condition, enforcedSince: nil), true
        ),
        (
            .after(EnforcementCondition(matches: 101, days: 1), enforcedSince: nil),
            .after(condition, enforcedSince: nil), false
        ),
        (
            .after(EnforcementCondition(matches: 1, days: 15), enforcedSince: nil),
            .after(condition, enforcedSince: nil), false
        ),
        (.stage(percent: 10, place: 0), .stage(percent: 10, place: 0), true),
        (.stage(percent: 9, place: 0), .stage(percent: 10, place: 0), false),
        (.stage(percent: 99, place: 0), .from(1), false), (.from(1), .after(condition, enforcedSince: nil), false),
    ])
    func strictness(_ one: PinRollout, _ other: PinRollout, _ isAsStrict: Bool) {
        #expect(one.isAsStrict(as: other) == isAsStrict)
    }

    @Test func texts() throws {
        var history = PinHistory()
        _ = history.note(entry: "a.test", .init(pins: ["a"]), at: Self.now)
        for hour in 0...(5 * 24) {
            history.count(.matched(["a"]), for: "a.test", at: Self.now + UnixTime(hour) * 3600)
        }
        let record = history.entries["a.test"]
        func text(_ rollout: PinRollout) -> String { rollout.text(at: Self.now, counted: record) }
        #expect(
            text(.after(EnforcementCondition(matches: 200, days: 14), enforcedSince: nil))
                == "reported until 200 matches and 14 days without a mismatch (enforce_after): 121 of 200 matches, "
                + "5 of 14 days")
        #expect(
            text(.after(EnforcementCondition(matches: 1, days: 0), enforcedSince: nil))
                == "reported until 1 match without a mismatch (enforce_after): 1 of 1 matches")
        #expect(
            text(.after(Self.condition, enforcedSince: Self.now))
                == "enforced since 2030-01-01 (enforce_after: 100 matches and 14 days without a mismatch)")
        #expect(text(.from(Self.now + 86_400)) == "reported until 2030-01-02 (enforce_from)")
        #expect(text(.from(Self.now)) == "enforced since 2030-01-01 (enforce_from)")
        #expect(text(.stage(percent: 10, place: 37)) == "reported here: stage 10%, this machine has place 37")
        #expect(text(.stage(percent: 50, place: 37)) == "enforced here: stage 50%, this machine has place 37")
    }

    // MARK: The record on disk

    private func entry(_ more: String...) throws -> [Pin] {
        try ([wrongPin] + more).map { try Pin(text: $0, for: .publicKey) }
    }

    private static let other = "sha256/BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA="

    @Test func staysForAsLongAsNothingWasTakenAway() throws {
        let waiting = PinRollout.after(Self.condition, enforcedSince: nil)
        var enforced = EnforcedEntries()
        let isAdded = enforced.add("a.test", try policy(waiting), at: Self.now)
        #expect(isAdded)
        #expect(enforced.since("a.test", try policy(waiting)) == Self.now)
        #expect(enforced.since("b.test", try policy(waiting)) == nil)
        // A backup pin or another condition doesn't undo it.
        #expect(enforced.since("a.test", try policy(waiting, pins: entry(Self.other))) == Self.now)
        let longer = PinRollout.after(EnforcementCondition(matches: 1000, days: 100), enforcedSince: nil)
        #expect(enforced.since("a.test", try policy(longer)) == Self.now)
        for changed in [
            try policy(nil), try policy(.from(1)), try policy(waiting, position: .leaf),
            try policy(waiting, mode: .certificate),
            try policy(waiting, pins: [Pin(text: Self.other, for: .publicKey)]),
        ] {
            #expect(enforced.since("a.test", changed) == nil)
            var settled = enforced
            let over = settled.settle { _ in changed }
            #expect(over == ["a.test"])
            #expect(settled.entries.isEmpty)
        }
        let over = enforced.settle { _ in nil }
        #expect(over == ["a.test"])
    }

    @Test func isBoundedAndReadAsWritten() throws {
        let waiting = try policy(.after(Self.condition, enforcedSince: nil))
        var enforced = EnforcedEntries()
        for number in 0..<EnforcedEntries.maximumEntries { _ = enforced.add("\(number).test", waiting, at: Self.now) }
        let isAdded = enforced.add("one-more.test", waiting, at: Self.now)
        #expect(!isAdded)
        let isKnown = enforced.add("0.test", waiting, at: Self.now)
        #expect(isKnown)
        var small = EnforcedEntries()
        _ = small.add("a.test", waiting, at: Self.now)
        let text = String(decoding: try JSONEncoder().encode(small), as: UTF8.self)
        #expect(try JSONDecoder().decode(EnforcedEntries.self, from: Data(text.utf8)) == small)
        let broken = text.replacingOccurrences(of: "\(Self.now)", with: "\(Int64.max)")
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(EnforcedEntries.self, from: Data(broken.utf8))
        }
    }
}
