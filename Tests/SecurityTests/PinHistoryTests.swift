import Foundation
import PinproxyTLS
import Testing

@testable import PinproxySecurity

@Suite struct PinHistoryTests {
    private let now: UnixTime = 1_893_456_000

    /// The expectation macro can't call mutating functions.
    private func note(
        _ entry: String, _ pins: [String], in history: inout PinHistory, at time: UnixTime
    ) -> Bool { history.note(entry: entry, .init(pins: pins), at: time) }

    private func history(_ pins: String..., entry: String = "api.test") -> PinHistory {
        var history = PinHistory()
        _ = history.note(entry: entry, .init(pins: pins), at: now)
        return history
    }

    @Test func countsMatchesOfEachPin() {
        var history = history("a", "b")
        for second in 1...3 { history.count(.matched(["a"]), for: "api.test", at: now + Int64(second)) }
        let entry = history.entries["api.test"]
        #expect(entry?.accepted == 3)
        #expect(entry?.misses == 0)
        #expect(entry?.matchesSinceMiss == 3)
        #expect(entry?.pins["a"] == .init(since: now, matches: 3, first: now + 1, last: now + 3))
        // A dead pin to lint: known for as long, and never seen.
        #expect(entry?.pins["b"] == .init(since: now))
    }

    @Test func countsMissesAndBeginsTheRowAnew() {
        var history = history("a")
        history.count(.matched(["a"]), for: "api.test", at: now + 1)
        history.count(.missed, for: "api.test", at: now + 2)
        history.count(.missed, for: "api.test", at: now + 3)
        history.count(.matched(["a"]), for: "api.test", at: now + 4)
        let entry = history.entries["api.test"]
        #expect(entry?.accepted == 2)
        #expect(entry?.misses == 2)
        #expect(entry?.lastMiss == now + 3)
        #expect(entry?.matchesSinceMiss == 1)
    }

    @Test func countsNothingForAnEntryThatWasNotNoted() {
        var history = PinHistory()
        history.count(.matched(["a"]), for: "api.test", at: now)
        #expect(history.entries.isEmpty)
    }

    @Test func forgetsWhatIsNoLongerConfiguredAfterTheRetention() {
        var history = history("a", "b")
        history.count(.matched(["a"]), for: "api.test", at: now)
        let removed = now + 10
        history.settle(at: removed) { _ in .init(pins: ["b"]) }
        #expect(history.entries["api.test"]?.pins["a"]?.removed == removed)
        #expect(history.entries["api.test"]?.pins["b"]?.removed == nil)
        // Settling again doesn't move the date.
        history.settle(at: removed + PinHistory.retention) { _ in .init(pins: ["b"]) }
        #expect(history.entries["api.test"]?.pins["a"]?.matches == 1)
        history.settle(at: removed + PinHistory.retention + 1) { _ in .init(pins: ["b"]) }
        #expect(history.entries["api.test"]?.pins.keys.sorted() == ["b"])
    }

    @Test func aPinThatComesBackKeepsItsCount() {
        var history = history("a")
        history.count(.matched(["a"]), for: "api.test", at: now)
        history.settle(at: now + 1) { _ in .init(pins: []) }
        #expect(note("api.test", ["a"], in: &history, at: now + 2))
        history.settle(at: now + PinHistory.retention * 2) { _ in .init(pins: ["a"]) }
        #expect(history.entries["api.test"]?.pins["a"]?.matches == 1)
        #expect(history.entries["api.test"]?.pins["a"]?.since == now)
    }

    @Test func forgetsAnEntryThatIsGone() {
        var history = history("a")
        history.settle(at: now) { _ in nil }
        #expect(history.entries["api.test"]?.removed == now)
        history.settle(at: now + PinHistory.retention + 1) { _ in nil }
        #expect(history.entries.isEmpty)
    }

    @Test func isBounded() {
        var history = PinHistory()
        for number in 0..<PinHistory.maximumEntries {
            #expect(note("\(number).test", [], in: &history, at: now))
        }
        #expect(!note("one-more.test", ["a"], in: &history, at: now))
        #expect(history.entries.count == PinHistory.maximumEntries)
        // A known entry is still counted.
        #expect(note("0.test", ["a"], in: &history, at: now))
        #expect(note("0.test", (0..<1000).map(String.init), in: &history, at: now))
        #expect(history.entries["0.test"]?.pins.count == PinHistory.maximumPinsOfEntry)
    }

    /// Counting on from these values would crash the proxy at every start.
    @Test(arguments: [
        ("\"since\":1893456000", "\"since\":9223372036854775807"),
        ("\"accepted\":1", "\"accepted\":9223372036854775807"),
        ("\"accepted\":1", "\"accepted\":-1"), ("\"misses\":0", "\"misses\":9223372036854775807"),
        ("\"misses\":0", "\"misses\":0,\"removed\":-9223372036854775808"),
        ("\"misses\":0", "\"misses\":0,\"lastMiss\":9223372036854775807"),
        ("\"matchesSinceMiss\":1", "\"matchesSinceMiss\":9223372036854775807"),
        ("\"matchedFor\":0", "\"matchedFor\":9223372036854775807"), ("\"matchedFor\":0", "\"matchedFor\":-1"),
        ("\"lastMatch\":1893456000", "\"lastMatch\":9223372036854775807"),
        ("\"matches\":1", "\"matches\":9223372036854775807"),
        ("\"matches\":1", "\"matches\":1,\"removed\":-9223372036854775808"),
        ("\"first\":1893456000", "\"first\":-9223372036854775808"),
        ("\"last\":1893456000", "\"last\":9223372036854775807"),
    ])
    func numbersThatCannotBeAreRefused(_ right: String, _ wrong: String) throws {
        var history = history("a")
        history.count(.matched(["a"]), for: "api.test", at: now)
        let text = String(decoding: try JSONEncoder().encode(history), as: UTF8.self)
        #expect(try JSONDecoder().decode(PinHistory.self, from: Data(text.utf8)) == history)
        let broken = text.replacingOccurrences(of: right, with: wrong)
        #expect(broken != text)
        #expect {
            try JSONDecoder().decode(PinHistory.self, from: Data(broken.utf8))
        } throws: {
            "\($0)".contains("out of bounds")
        }
    }
}
