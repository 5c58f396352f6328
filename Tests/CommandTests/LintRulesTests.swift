import Foundation
import PinproxyRecords
import PinproxyTestAuthority
import Testing

/// What lint concludes from the running proxy's counts of rules.
@Suite(.serialized) struct LintRulesTests {
    private typealias Name = RuleHistory.Name
    private static let now = CertificateTemplate.now
    private static let day = CertificateTemplate.day
    private static let rule = Name(entry: "api.test", requests: "/v1/** (GET)")

    /// A bed with a rule in line 5, and the counts that a proxy would have left.
    private func bed(_ enforcement: String = "enforce", _ fill: (inout RuleHistory) -> Void) throws -> CommandBed {
        let bed = try LintTests.bed(
            """
            defaults: {session: {service_type: default}}
            hosts:
              - match: api.test
                rules:
                  - path: /v1/**
                    methods: [GET]
                    response: {status: [200], enforcement: \(enforcement)}
                  - {path: /session/**, session: {service_type: voice}}

            """)
        var history = RuleHistory()
        fill(&history)
        try FileManager.default.createDirectory(atPath: bed.path("state/pinproxy"), withIntermediateDirectories: true)
        try JSONEncoder().encode(history).write(to: URL(fileURLWithPath: bed.path("state/pinproxy/rules.json")))
        return bed
    }

    private func settle(_ history: inout RuleHistory, demands: String? = nil, daysAgo: Int64) {
        history.settle([Self.rule: demands], at: Self.now - daysAgo * Self.day)
    }

    private func lint(_ bed: CommandBed) throws -> [LintTests.Finding] {
        try LintTests.lint(bed).filter { $0.rule != "insecure" }
    }

    @Test func saysThatARuleNeverApplied() throws {
        let never = try lint(bed { settle(&$0, daysAgo: 7) })
        #expect(never.map(\.summary) == ["5:9 note unused-rule"])
        #expect(
            never.first?.message
                == "api.test, rule 1 of the entry (/v1/** (GET)): the rules were applied to no request since 2029-12-25"
        )
        #expect(never.first?.entry == "api.test")
        // Not after less than a week, and not for rules that were applied.
        #expect(try lint(bed { settle(&$0, daysAgo: 6) }).isEmpty)
        let applied = try bed {
            settle(&$0, daysAgo: 60)
            $0.applied(Self.rule, exchanges: 1, at: Self.now - 50 * Self.day)
        }
        #expect(try lint(applied).isEmpty)
        #expect(try lint(bed { _ in }).isEmpty)
    }

    @Test func saysWhatWasRefusedLately() throws {
        let refused = try bed {
            settle(&$0, daysAgo: 60)
            $0.applied(Self.rule, exchanges: 9, at: Self.now)
            for daysAgo in [9, 6, 1] as [Int64] {
                $0.refused(Self.rule, cause: "Unacceptable status 50\(daysAgo)", at: Self.now - daysAgo * Self.day)
            }
        }
        let found = try lint(refused)
        #expect(found.map(\.summary) == ["5:9 warning refused-responses"])
        #expect(
            found.first?.message.hasSuffix(
                ": 2 responses were refused in the last 7 days, the last one 2029-12-31: Unacceptable status 501")
                == true)
        #expect(try refused.configured("lint", rest: ["--offline", "--strict", "--at", LintTests.today]).code == 1)
        let old = try bed {
            settle(&$0, daysAgo: 60)
            $0.applied(Self.rule, exchanges: 9, at: Self.now)
            $0.refused(Self.rule, cause: "x", at: Self.now - 7 * Self.day)
        }
        #expect(try lint(old).isEmpty)
    }

    @Test(arguments: [
        (responses: 100, days: Int64(7), reportedDaysAgo: nil as Int64?, expected: "can-be-enforced"),
        (responses: 99, days: 7, reportedDaysAgo: nil, expected: nil),
        (responses: 100, days: 6, reportedDaysAgo: nil, expected: nil),
        (responses: 100, days: 60, reportedDaysAgo: 8, expected: "can-be-enforced"),
        (responses: 100, days: 60, reportedDaysAgo: 5, expected: "refused-responses"),
    ]) func aReportOnlyRuleIsPromotedOnceItHasEarnedIt(
        responses: Int, days: Int64, reportedDaysAgo: Int64?, expected: String?
    ) throws {
        let bed = try bed("report") {
            settle(&$0, demands: "a", daysAgo: days)
            $0.applied(Self.rule, exchanges: responses, at: Self.now)
            if let reportedDaysAgo { $0.reported(Self.rule, cause: "x", at: Self.now - reportedDaysAgo * Self.day) }
            $0.judged(Self.rule, responses: responses)
        }
        #expect(try lint(bed).map(\.rule) == (expected.map { [$0] } ?? []))
    }

    @Test func brokenCountsAreANote() throws {
        let bed = try bed { _ in }
        try bed.write("state/pinproxy/rules.json", "{\"rules\": 1}")
        let found = try lint(bed)
        #expect(found.map(\.rule) == ["history"])
        #expect(found.first?.message.hasPrefix("the counts of the rules can't be read: ") == true)
    }
}
