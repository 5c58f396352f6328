import Foundation
import PinproxySecurity
import PinproxyTLS
import PinproxyTestAuthority
import Testing

/// What lint concludes from the running proxy's counts.
@Suite(.serialized) struct LintHistoryTests {
    private static let now = CertificateTemplate.now
    private static let day = CertificateTemplate.day

    /// A bed with one entry of three pins, and the counts that a proxy would have left.
    private func bed(_ more: String = "", _ fill: (inout PinHistory) -> Void) throws -> CommandBed {
        let bed = try LintTests.bed("hosts:\n" + LintTests.entry("api.test", pins: 3, more))
        var history = PinHistory()
        fill(&history)
        try FileManager.default.createDirectory(atPath: bed.path("state/pinproxy"), withIntermediateDirectories: true)
        try JSONEncoder().encode(history).write(to: URL(fileURLWithPath: bed.path("state/pinproxy/pins.json")))
        return bed
    }

    private func note(_ history: inout PinHistory, daysAgo: Int64) {
        let isNoted = history.note(entry: "api.test", .init(pins: LintTests.pins), at: Self.now - daysAgo * Self.day)
        #expect(isNoted)
    }

    private func count(
        _ history: inout PinHistory, _ outcome: PinHistory.Outcome, times: Int = 1, daysAgo: Int64
    ) {
        for _ in 0..<times { history.count(outcome, for: "api.test", at: Self.now - daysAgo * Self.day) }
    }

    @Test func aPinIsDeadOnceOthersAloneMatch() throws {
        let bed = try bed {
            note(&$0, daysAgo: 60)
            count(&$0, .matched([LintTests.pins[0]]), daysAgo: 1)
            count(&$0, .matched([LintTests.pins[1]]), times: 5, daysAgo: 30)
        }
        let found = try LintTests.lint(bed)
        #expect(found.map(\.summary) == ["2:13 warning dead-pin", "2:13 note dead-pin"])
        #expect(found[0].message.contains("\(LintTests.pins[1]) last matched 2029-12-02, after 5 matches"))
        #expect(found[1].message.contains("\(LintTests.pins[2]) has matched nothing since 2029-11-02"))
    }

    @Test func aPinLivesAsLongAsNothingElseDoes() throws {
        // Neither matched lately, since the host was not requested.
        let asleep = try bed {
            note(&$0, daysAgo: 60)
            count(&$0, .matched([LintTests.pins[0]]), daysAgo: 31)
        }
        #expect(try LintTests.lint(asleep).isEmpty)
        // Less than thirty days are not enough.
        let young = try bed {
            note(&$0, daysAgo: 29)
            count(&$0, .matched([LintTests.pins[0]]), daysAgo: 1)
        }
        #expect(try LintTests.lint(young).isEmpty)
    }

    @Test(arguments: [
        (matches: 100, since: Int64(7), expected: "can-be-enforced"), (matches: 99, since: 7, expected: nil),
        (matches: 100, since: 6, expected: nil),
    ]) func anEntryIsPromotedOnceItHasEarnedIt(matches: Int, since: Int64, expected: String?) throws {
        let bed = try bed(", enforcement: report") {
            note(&$0, daysAgo: since)
            count(&$0, .matched([LintTests.pins[0]]), times: matches, daysAgo: 1)
        }
        let found = try LintTests.lint(bed).filter { $0.rule != "report-only" }
        #expect(found.map(\.rule) == (expected.map { [$0] } ?? []))
        #expect(found.allSatisfy { $0.severity == "note" })
    }

    @Test func missesAreToldAndBeginTheCountAnew() throws {
        let missed = try bed(", enforcement: report") {
            note(&$0, daysAgo: 20)
            count(&$0, .matched([LintTests.pins[0]]), times: 500, daysAgo: 9)
            count(&$0, .missed, times: 2, daysAgo: 8)
            count(&$0, .matched([LintTests.pins[0]]), times: 99, daysAgo: 1)
        }
        let found = try LintTests.lint(missed).filter { $0.rule != "report-only" }
        #expect(found.map(\.summary) == ["2:13 warning misses"])
        #expect(found[0].message.contains("2 connections met no pin, the last one 2029-12-24"))
        let recovered = try bed(", enforcement: report") {
            note(&$0, daysAgo: 20)
            count(&$0, .missed, daysAgo: 8)
            count(&$0, .matched([LintTests.pins[0]]), times: 100, daysAgo: 1)
        }
        #expect(try LintTests.lint(recovered).filter { $0.rule != "report-only" }.map(\.rule) == ["can-be-enforced"])
        // An enforced entry isn't a candidate for promotion.
        let enforced = try bed {
            note(&$0, daysAgo: 20)
            count(&$0, .matched([LintTests.pins[0]]), times: 100, daysAgo: 1)
        }
        #expect(try LintTests.lint(enforced).isEmpty)
    }

    /// The recommended rollout passes --strict for its duration, and no longer.
    @Test(arguments: [(Int64(0), "note"), (29, "note"), (30, "warning")])
    func anEntryThatOnlyReportsIsANoteForItsTime(_ days: Int64, _ severity: String) throws {
        let bed = try bed(", enforcement: report") { history in
            let isNoted = history.note(
                entry: "api.test", .init(pins: LintTests.pins), isReportOnly: true, at: Self.now - days * Self.day)
            #expect(isNoted)
        }
        let found = try LintTests.lint(bed)
        #expect(found.map(\.summary) == ["2:13 \(severity) report-only"])
        #expect(
            found[0].message.contains("enforcement is report since \(CalendarDate(Self.now - days * Self.day))"),
            "\(found)")
        let strict = try bed.configured("lint", rest: ["--offline", "--strict", "--at", LintTests.today])
        #expect(strict.code == (severity == "note" ? 0 : 1), "\(strict)")
    }

    @Test func anEntryThatWasNeverCountedReportsToo() throws {
        let found = try LintTests.lint(
            LintTests.bed("hosts:\n" + LintTests.entry("api.test", pins: 3, ", enforcement: report")))
        #expect(found.map(\.summary) == ["2:13 note report-only"])
        #expect(found[0].message.contains("no connection has been counted yet"))
    }

    /// An added pin is a correction: misses before it don't count.
    @Test func missesEndWithTheCorrection() throws {
        func missed(_ correct: (inout PinHistory) -> Void) throws -> [LintTests.Finding] {
            let bed = try bed(", enforcement: report") { history in
                _ = history.note(
                    entry: "api.test", .init(pins: Array(LintTests.pins.prefix(2))), at: Self.now - 20 * Self.day)
                count(&history, .missed, times: 4, daysAgo: 8)
                correct(&history)
            }
            return try LintTests.lint(bed).filter { $0.rule != "report-only" }
        }
        // The third pin is configured, and there was no connection since.
        #expect(try missed { _ in }.isEmpty)
        #expect(try missed { note(&$0, daysAgo: 2) }.isEmpty)
        let again = try missed {
            note(&$0, daysAgo: 2)
            count(&$0, .missed, times: 3, daysAgo: 1)
        }
        #expect(again.map(\.rule) == ["misses"])
        #expect(again[0].message.contains("3 connections met no pin"), "\(again)")
    }

    @Test func brokenCountsAreANote() throws {
        let bed = try bed { _ in }
        try bed.write("state/pinproxy/pins.json", "{")
        let found = try LintTests.lint(bed)
        #expect(found.map(\.rule) == ["history"])
        #expect(found[0].file.hasSuffix("/pins.json"))
        #expect(found[0].line == nil)
        #expect(try bed.configured("lint", rest: ["--offline", "--strict"]).code == 0)
    }

    /// Enforcement starts automatically; no action is needed.
    @Test func whatIsEnforcedLaterIsANoteWithItsProgress() throws {
        let waiting = try bed(", enforcement: report, enforce_after: {matches: 200, days: 14}") {
            note(&$0, daysAgo: 60)
            count(&$0, .matched([LintTests.pins[0]]), times: 60, daysAgo: 8)
            count(&$0, .matched([LintTests.pins[0]]), times: 60, daysAgo: 7)
        }
        let found = try LintTests.lint(waiting).filter { $0.rule != "dead-pin" }
        #expect(found.map(\.summary) == ["2:13 note report-only"])
        #expect(
            found[0].message.contains(
                "reported until 200 matches and 14 days without a mismatch (enforce_after): 120 of 200 matches, 1 of "
                    + "14 days"), "\(found)")
        // Misses are a warning anyway.
        let missed = try bed(", enforcement: report, enforce_after: {matches: 200}") {
            note(&$0, daysAgo: 20)
            count(&$0, .missed, daysAgo: 8)
        }
        #expect(try LintTests.lint(missed).map(\.rule).sorted() == ["misses", "report-only"])
    }

    @Test(arguments: [("2030-01-02", "report-only"), ("2030-01-01", "can-be-enforced")])
    func aDateIsANoteBeforeAndAfter(_ date: String, _ rule: String) throws {
        let bed = try bed(", enforcement: report, enforce_from: \(date)") { note(&$0, daysAgo: 29) }
        let found = try LintTests.lint(bed)
        #expect(found.map(\.summary) == ["2:13 note \(rule)"])
        #expect(found[0].message.contains("\(date) (enforce_from)"), "\(found)")
    }
}
