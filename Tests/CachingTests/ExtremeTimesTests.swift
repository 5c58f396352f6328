import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

/// False clocks and fields: nothing traps, and nothing becomes fresher.
@Suite struct ExtremeTimesTests {
    private static let times: [Int64] = [.min, .min + 1, -1, 0, 1, Trial.arrival, 253_402_300_799, .max - 1, .max]

    private static let heads: [[String]] = [
        [],
        ["Cache-Control: max-age=99999999999999999999, stale-while-revalidate=99999999999, stale-if-error=9999999999"],
        ["Expires: Fri, 31 Dec 9999 23:59:59 GMT"], ["Expires: Mon, 01 Jan 0001 00:00:00 GMT"],
        ["Date: Fri, 31 Dec 9999 23:59:59 GMT", "Expires: Mon, 01 Jan 0001 00:00:00 GMT"],
        ["Date: Mon, 01 Jan 0000 00:00:00 GMT", "Expires: Fri, 31 Dec 9999 23:59:59 GMT"],
        ["Last-Modified: Mon, 01 Jan 0000 00:00:00 GMT"], ["Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT"],
        ["Date: Fri, 31 Dec 9999 23:59:59 GMT", "Last-Modified: Mon, 01 Jan 0001 00:00:00 GMT"],
        ["Cache-Control: max-age=5", "Age: 99999999999999999999"],
    ]

    @Test func noTimeOverflows() throws {
        let requests = try [
            "X: y", "Cache-Control: max-stale", "Cache-Control: max-age=99999999999, max-stale=99999999999",
            "Cache-Control: min-fresh=99999999999",
        ].map { try Trial.request($0) }
        for head in Self.heads {
            let traits = CachedTraits(try Trial.response(head).view)
            for requested in Self.times {
                for received in Self.times {
                    let times = ResponseTimes(requested: requested, received: received)
                    for isShared in [false, true] {
                        let freshness = Freshness(traits, times, isShared: isShared)
                        #expect(0...CacheDirectives.mostSeconds ~= freshness.lifetime)
                        let choice = CacheChoice(traits, freshness, isShared: isShared)
                        for now in Self.times {
                            #expect(freshness.age(at: now) >= 0)
                            #expect(freshness.rest(at: now) <= freshness.lifetime)
                            let answers = requests.map { choice.answer(to: $0, at: now) }
                            // Before its arrival it is never used.
                            if now < received {
                                #expect(answers.allSatisfy { $0 == .ask(.stale) || $0 == .ask(.request) })
                            }
                            _ = choice.standsInForError(requests[0], at: now)
                        }
                    }
                }
            }
        }
    }

    /// Whatever Date, Age and the clock are, it is fresh no longer than it says, and no longer than without them.
    @Test func liesMakeNothingFresher() throws {
        let says = "Cache-Control: max-age=100"
        let honest = try Trial.choice([says]).freshness
        let lies = [
            "Date: Fri, 31 Dec 9999 23:59:59 GMT", "Date: Mon, 01 Jan 0001 00:00:00 GMT", "Date: x", "Age: -5",
            "Age: x",
            "Age: 99999999999999999999", "Age: 5",
        ]
        for first in lies {
            for second in lies {
                for delay: Int64 in [-(1 << 62), -100, 0, 100, 1 << 62] {
                    let lying = try Trial.choice([says, first, second], delay: delay).freshness
                    for later: Int64 in [-100_000, -1, 0, 1, 99, 100, 101, 100_000] {
                        let now = Trial.arrival + later
                        #expect(lying.rest(at: now) <= honest.rest(at: now), "\(first), \(second), \(delay), \(later)")
                    }
                }
            }
        }
    }

    /// Setting the clock forward makes nothing fresher, nor does setting it back before the arrival.
    @Test func stepsOfTheClockMakeNothingFresher() throws {
        for head in Self.heads {
            let freshness = try Trial.choice(head).freshness
            var last = freshness.rest(at: Trial.arrival)
            for later: Int64 in [1, 2, 100, 1 << 31, 1 << 40, .max - Trial.arrival] {
                let rest = freshness.rest(at: Trial.arrival + later)
                #expect(rest <= last)
                last = rest
            }
            for earlier: Int64 in [1, 1 << 31, 1 << 62] { #expect(freshness.rest(at: Trial.arrival - earlier) < 0) }
        }
    }

    /// A Date in the future would make a page seem unchanged for longer.
    @Test func aHeuristicLifetimeCountsFromTheArrival() throws {
        let modified = "Last-Modified: Mon, 12 Jan 1970 13:36:40 GMT"
        #expect(try Trial.choice([modified, "Date: Mon, 12 Jan 1970 23:46:40 GMT"]).freshness.lifetime == 60)
        #expect(try Trial.choice([modified]).freshness.lifetime == 60)
    }
}
