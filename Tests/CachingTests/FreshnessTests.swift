import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct FreshnessTests {
    private let date = "Date: \(Trial.date)"

    /// Fields, with the time for which the response is fresh.
    @Test(
        arguments: [
            (["Cache-Control: max-age=100"], 100), (["Cache-Control: max-age=100", "Age: 30"], 70),
            (["Cache-Control: max-age=100", "Age: 30, 5"], 70), (["Cache-Control: max-age=100", "Age: soon"], 100),
            (["Cache-Control: max-age=100", "Expires: 0"], 100), (["Cache-Control: max-age=100, s-maxage=5"], 100),
            (["Expires: 0"], 0), (["Expires: Mon, 12 Jan 1970 13:47:40 GMT"], 60),
            (["Expires: Mon, 12 Jan 1970 13:47:40 GMT", "Expires: Mon, 12 Jan 1970 13:47:00 GMT"], 20),
            (["Expires: Mon, 12 Jan 1970 13:47:40 GMT", "Expires: x"], 0),
            (["Expires: Mon, 12 Jan 1970 12:47:40 GMT"], 0),
            // A tenth of the ten minutes since the last change.
            (["Last-Modified: Mon, 12 Jan 1970 13:36:40 GMT"], 60),
            (["Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT"], 86_400),
            (["Last-Modified: Mon, 12 Jan 1970 13:56:40 GMT"], 0), ([], 0),
        ] as [([String], Int64)])
    func lifetimesArePrivate(_ fields: [String], _ seconds: Int64) throws {
        let choice = try Trial.choice([date] + fields)
        let request = try Trial.request()
        #expect(max(0, choice.freshness.rest(at: Trial.arrival)) == seconds)
        if seconds > 0 { #expect(choice.answer(to: request, at: Trial.arrival + seconds - 1) == .fresh) }
        #expect(choice.answer(to: request, at: Trial.arrival + seconds) == .ask(.stale))
    }

    @Test func sharedLifetimesComeFirst() throws {
        let fields = [date, "Cache-Control: max-age=100, s-maxage=5"]
        #expect(try Trial.choice(fields, isShared: true).freshness.lifetime == 5)
    }

    @Test func theWayHereCounts() throws {
        let fields = ["Date: Mon, 12 Jan 1970 13:46:30 GMT", "Cache-Control: max-age=100", "Age: 8"]
        // Ten seconds by the clocks, eleven by Age and the delay.
        #expect(try Trial.choice(fields, delay: 3).freshness.age(at: Trial.arrival) == 11)
        #expect(try Trial.choice(fields).freshness.age(at: Trial.arrival) == 10)
        // An origin's clock in the future makes nothing younger than new.
        let ahead = ["Date: Mon, 12 Jan 1970 14:46:30 GMT", "Cache-Control: max-age=100"]
        #expect(try Trial.choice(ahead).freshness.age(at: Trial.arrival + 4) == 4)
    }

    @Test func aClockThatIsSetBackMakesNothingFresh() throws {
        let choice = try Trial.choice([date, "Cache-Control: max-age=100, stale-if-error=50"])
        let request = try Trial.request("Cache-Control: max-stale")
        #expect(choice.answer(to: request, at: Trial.arrival - 1) == .ask(.stale))
        #expect(!choice.standsInForError(request, at: Trial.arrival - 1))
    }
}
