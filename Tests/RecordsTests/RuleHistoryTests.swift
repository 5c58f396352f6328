import Foundation
import PinproxyTLS
import Testing

@testable import PinproxyRecords

@Suite struct RuleHistoryTests {
    private typealias Name = RuleHistory.Name
    private static let now: UnixTime = 1_893_456_000
    private static let day: Int64 = 86_400
    private let rule = Name(entry: "api.test", requests: "/v1/** (GET)")
    private let own = Name(entry: "api.test", requests: nil)

    private func history(_ configured: [Name: String?]) -> RuleHistory {
        var history = RuleHistory()
        history.settle(configured, at: Self.now)
        return history
    }

    @Test func countsWhatIsConfigured() {
        var history = history([rule: nil, own: nil])
        history.applied(rule, exchanges: 3, at: Self.now + 60)
        history.applied(rule, exchanges: 0, at: Self.now + 120)
        history.applied(Name(entry: nil, requests: nil), exchanges: 1, at: Self.now)
        #expect(history.records.count == 2)
        #expect(history.records[rule]?.applied == 3)
        #expect(history.records[rule]?.last == Self.now + 60)
        #expect(history.records[own]?.applied == 0)
        #expect(history.records[own]?.last == nil)
    }

    @Test func tellsRefusalsOfTheLastSevenDays() throws {
        var history = history([rule: nil])
        for day in [0, 0, 1, 6] as [Int64] {
            history.refused(rule, cause: "of day \(day)", at: Self.now + day * Self.day)
        }
        let refusals = try #require(history.records[rule]?.refusals)
        #expect(refusals.total == 4)
        #expect(refusals.cause == "of day 6")
        #expect(refusals.last == Self.now + 6 * Self.day)
        #expect([6, 7, 8, 12, 13].map { refusals.lately(at: Self.now + $0 * Self.day) } == [4, 2, 1, 1, 0])
        // Days are forgotten once they no longer count.
        history.refused(rule, cause: "x", at: Self.now + 30 * Self.day)
        #expect(history.records[rule]?.refusals.days.count == 1)
        history.refused(rule, cause: String(repeating: "x", count: 5000), at: Self.now + 30 * Self.day)
        #expect(history.records[rule]?.refusals.cause?.count == 300)
    }

    @Test func aReportAndOtherDemandsBeginTheRowAnew() {
        var history = history([rule: "a"])
        history.judged(rule, responses: 50)
        #expect(history.records[rule]?.rightSinceReport == 50)
        history.reported(rule, cause: "x", at: Self.now + 5)
        #expect(history.records[rule]?.rightSinceReport == 0)
        history.judged(rule, responses: 7)
        history.settle([rule: "a"], at: Self.now + 10)
        #expect(history.records[rule]?.rightSinceReport == 7)
        #expect(history.records[rule]?.reportOnlySince == Self.now)
        history.settle([rule: "b"], at: Self.now + 20)
        #expect(history.records[rule]?.rightSinceReport == 0)
        #expect(history.records[rule]?.reportOnlySince == Self.now + 20)
        history.settle([rule: nil], at: Self.now + 30)
        #expect(history.records[rule]?.reportOnlySince == nil)
    }

    @Test func whatIsGoneIsRememberedForAWhile() {
        var history = history([rule: nil, own: nil])
        history.applied(rule, exchanges: 1, at: Self.now)
        history.settle([own: nil], at: Self.now + 10)
        #expect(history.records[rule]?.removed == Self.now + 10)
        history.settle([rule: nil, own: nil], at: Self.now + 20)
        #expect(history.records[rule]?.removed == nil)
        #expect(history.records[rule]?.applied == 1)
        history.settle([own: nil], at: Self.now + 30)
        history.settle([own: nil], at: Self.now + 30 + RuleHistory.retention)
        #expect(history.records[rule] != nil)
        history.settle([own: nil], at: Self.now + 31 + RuleHistory.retention)
        #expect(history.records[rule] == nil)
    }

    @Test func outlivesTheProcess() throws {
        var history = history([rule: "a", own: nil, Name(entry: nil, requests: "/x"): nil])
        history.applied(rule, exchanges: 2, at: Self.now)
        history.reported(rule, cause: "x", at: Self.now)
        history.refused(own, cause: "y", at: Self.now)
        let data = try JSONEncoder().encode(history)
        #expect(try JSONDecoder().decode(RuleHistory.self, from: data) == history)
        // Whatever the file says, counting must not trap.
        let text = String(decoding: data, as: UTF8.self)
        #expect(text.contains("\"applied\":2"))
        for (old, new) in [
            ("\"applied\":2", "\"applied\":9223372036854775807"), ("\"applied\":2", "\"applied\":-1"),
            ("\"since\":1893456000", "\"since\":9223372036854775807"),
            ("\"day\":21915", "\"day\":-9223372036854775808"),
        ] {
            let broken = text.replacingOccurrences(of: old, with: new)
            #expect(broken != text)
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(RuleHistory.self, from: Data(broken.utf8))
            }
        }
    }
}
