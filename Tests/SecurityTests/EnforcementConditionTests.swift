import PinproxyTLS
import Testing

@testable import PinproxySecurity

/// What counts towards `enforce_after`, and what doesn't.
@Suite struct EnforcementConditionTests {
    private let now: UnixTime = 1_893_456_000
    private let day: UnixTime = 86_400

    private func history(_ pins: [String] = ["a"]) -> PinHistory {
        var history = PinHistory()
        _ = history.note(entry: "api.test", .init(pins: pins, terms: "public-key any"), at: now)
        return history
    }

    /// One match at each of these times.
    private func match(_ history: inout PinHistory, at times: [UnixTime]) {
        for time in times { history.count(.matched(["a"]), for: "api.test", at: time) }
    }

    private func holds(_ history: PinHistory, matches: Int = 1, days: Int = 0) -> Bool {
        history.entries["api.test"]?.meets(EnforcementCondition(matches: matches, days: days)) ?? false
    }

    /// Matches twice a day, starting with the first.
    private func halfDays(_ count: Int, from start: UnixTime) -> [UnixTime] {
        (0...count).map { start + UnixTime($0) * day / 2 }
    }

    @Test func oneMatchShort() {
        var history = history()
        #expect(!holds(history))
        match(&history, at: [now, now])
        #expect(holds(history, matches: 2))
        #expect(!holds(history, matches: 3))
        match(&history, at: [now])
        #expect(holds(history, matches: 3))
    }

    @Test func oneSecondShort() {
        var history = history()
        match(&history, at: halfDays(27, from: now) + [now + 14 * day - 1])
        #expect(!holds(history, days: 14))
        match(&history, at: [now + 14 * day])
        #expect(holds(history, days: 14))
    }

    /// Both conditions must hold.
    @Test func enoughMatchesInTooFewDays() {
        var history = history()
        match(&history, at: halfDays(4, from: now))
        #expect(holds(history, matches: 5, days: 2))
        #expect(!holds(history, matches: 6, days: 2))
        #expect(!holds(history, matches: 5, days: 3))
    }

    @Test func aMismatchBeginsAnew() {
        var history = history()
        match(&history, at: halfDays(28, from: now))
        history.count(.missed, for: "api.test", at: now + 14 * day)
        #expect(!holds(history))
        match(&history, at: [now + 14 * day])
        #expect(holds(history))
        #expect(!holds(history, days: 1))
        match(&history, at: halfDays(2, from: now + 14 * day))
        #expect(holds(history, days: 1))
        #expect(!holds(history, days: 2))
    }

    /// The clock was set forward, the machine was off, or there were no requests.
    @Test(arguments: [1, 2, 365] as [UnixTime])
    func aGapCountsAsADayAtMost(_ days: UnixTime) {
        var history = history()
        match(&history, at: [now, now + days * day])
        #expect(holds(history, days: 1))
        #expect(!holds(history, days: 2))
        // The clock is right again.
        match(&history, at: [now + 60])
        #expect(!holds(history, days: 2))
        match(&history, at: halfDays(2, from: now + 60))
        #expect(holds(history, days: 2))
    }

    @Test func aClockThatIsSetBackIsNoEvidence() {
        var history = history()
        match(&history, at: [now, now - 400 * day, now - 399 * day - 1])
        #expect(!holds(history, days: 1))
        match(&history, at: [now - 399 * day])
        #expect(holds(history, days: 1))
    }

    /// A miss by a clock that was ahead: days count from the next match.
    @Test func aMissInTheFutureIsOverWithTheNextMatch() {
        var history = history()
        history.count(.missed, for: "api.test", at: now + 1000 * day)
        match(&history, at: halfDays(2, from: now))
        #expect(holds(history, days: 1))
    }

    @Test func aPinThatIsTakenAwayBeginsAnewAndOneThatIsAddedDoesNot() {
        var history = history(["a", "b"])
        match(&history, at: [now])
        _ = history.note(entry: "api.test", .init(pins: ["a", "b", "c"], terms: "public-key any"), at: now)
        history.settle(at: now) { _ in .init(pins: ["a", "b", "c", "d"], terms: "public-key any") }
        #expect(holds(history))
        var settled = history
        settled.settle(at: now) { _ in .init(pins: ["a", "d"], terms: "public-key any") }
        #expect(!holds(settled))
        // Only once: later matches count.
        match(&settled, at: [now])
        settled.settle(at: now) { _ in .init(pins: ["a", "d"], terms: "public-key any") }
        #expect(holds(settled))
        _ = history.note(entry: "api.test", .init(pins: ["a"], terms: "public-key any"), at: now)
        #expect(!holds(history))
    }

    @Test func anotherPositionOrModeBeginsAnew() {
        var history = history()
        match(&history, at: [now])
        history.settle(at: now) { _ in .init(pins: ["a"], terms: "public-key leaf") }
        #expect(!holds(history))
    }

    @Test func anEntryThatWasGoneBeginsAnew() {
        var history = history()
        match(&history, at: [now])
        history.settle(at: now) { _ in nil }
        #expect(!holds(history))
        _ = history.note(entry: "api.test", .init(pins: ["a"], terms: "public-key any"), at: now)
        #expect(!holds(history))
        match(&history, at: [now])
        #expect(holds(history))
    }

    /// A full history counts no further entries, and so enforces none of them.
    @Test func anEntryThatIsNotCountedIsNeverReady() {
        var history = PinHistory()
        for number in 0..<PinHistory.maximumEntries {
            _ = history.note(entry: "\(number).test", .init(pins: []), at: now)
        }
        let isNoted = history.note(entry: "api.test", .init(pins: ["a"]), at: now)
        #expect(!isNoted)
        match(&history, at: [now])
        #expect(!holds(history))
    }
}
