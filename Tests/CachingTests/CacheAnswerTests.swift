import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct CacheAnswerTests {
    /// For a response that is fresh for 100 seconds, after `age` seconds.
    @Test(
        arguments: [
            ("", "", 99, .fresh), ("", "", 100, .ask(.stale)), ("", "no-cache", 1, .ask(.request)),
            ("", "no-store", 1, .ask(.request)), ("", "max-age=5", 5, .fresh), ("", "max-age=5", 6, .ask(.request)),
            ("", "max-age=5, max-stale=3", 8, .fresh), ("", "max-age=5, max-stale=3", 9, .ask(.request)),
            ("", "min-fresh=10", 90, .fresh), ("", "min-fresh=10", 91, .ask(.request)),
            ("", "max-stale=5", 105, .stale(.client)), ("", "max-stale=5", 106, .ask(.stale)),
            ("", "max-stale", 5000, .stale(.client)), (", must-revalidate", "max-stale", 101, .ask(.stale)),
            (", proxy-revalidate", "max-stale", 101, .stale(.client)), (", no-cache", "", 1, .ask(.stale)),
            (", stale-while-revalidate=5", "", 104, .stale(.whileRevalidating)),
            (", stale-while-revalidate=5", "", 105, .ask(.stale)), ("", "only-if-cached", 99, .fresh),
            ("", "only-if-cached", 100, .unavailable), ("", "only-if-cached, no-cache", 1, .unavailable),
            (", immutable", "no-cache", 1, .ask(.request)),
        ] as [(String, String, Int64, CacheAnswer)])
    func aPrivateCacheAnswers(_ says: String, _ wish: String, _ age: Int64, _ answer: CacheAnswer) throws {
        let choice = try Trial.choice(["Date: \(Trial.date)", "Cache-Control: max-age=100\(says)"])
        #expect(choice.answer(to: try Trial.request("Cache-Control: \(wish)"), at: Trial.arrival + age) == answer)
    }

    @Test(arguments: [
        ("max-age=100, proxy-revalidate", CacheAnswer.ask(.stale)), ("s-maxage=100", .ask(.stale)),
        ("max-age=100", .stale(.client)),
    ])
    func aSharedCacheIsStricter(_ says: String, _ answer: CacheAnswer) throws {
        let choice = try Trial.choice(["Date: \(Trial.date)", "Cache-Control: \(says)"], isShared: true)
        #expect(choice.answer(to: try Trial.request("Cache-Control: max-stale"), at: Trial.arrival + 101) == answer)
    }

    @Test func methodsAndConditions() throws {
        let choice = try Trial.choice(["Date: \(Trial.date)", "Cache-Control: max-age=100"])
        #expect(choice.answer(to: try Trial.request(method: "HEAD"), at: Trial.arrival) == .fresh)
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
            #expect(choice.answer(to: try Trial.request(method: method), at: Trial.arrival) == .ask(.method))
        }
        for length in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
            #expect(choice.answer(to: try Trial.request(length), at: Trial.arrival) == .ask(.bypass))
        }
        #expect(choice.answer(to: try Trial.request("Content-Length: 0"), at: Trial.arrival) == .fresh)
        #expect(choice.answer(to: try Trial.request("If-Match: \"a\""), at: Trial.arrival) == .ask(.bypass))
        #expect(choice.answer(to: try Trial.request("Pragma: no-cache"), at: Trial.arrival) == .ask(.request))
        let both = try Trial.request("Pragma: no-cache", "Cache-Control: max-age=5")
        #expect(choice.answer(to: both, at: Trial.arrival) == .fresh)
        #expect(CacheChoice.miss(both, .uriMiss) == .ask(.uriMiss))
        #expect(CacheChoice.miss(try Trial.request("Cache-Control: only-if-cached"), .uriMiss) == .unavailable)
    }

    @Test func errorsAreBridgedForAsLongAsIsAllowed() throws {
        func bridges(_ says: String, _ wish: String, _ age: Int64) throws -> Bool {
            try Trial.choice(["Date: \(Trial.date)", "Cache-Control: max-age=100\(says)"])
                .standsInForError(try Trial.request("Cache-Control: \(wish)"), at: Trial.arrival + age)
        }
        #expect(try bridges(", stale-if-error=10", "", 109))
        #expect(try !bridges(", stale-if-error=10", "", 110))
        #expect(try bridges("", "stale-if-error=10", 109))
        #expect(try !bridges("", "", 101))
        #expect(try !bridges(", stale-if-error=10, must-revalidate", "", 101))
        #expect(try !bridges(", stale-if-error=10, no-cache", "", 101))
        #expect(try !bridges(", stale-if-error=10", "no-cache", 101))
        #expect(try !bridges(", stale-if-error=10", "no-store", 101))
        #expect(try bridges(", stale-if-error=10", "stale-if-error=0", 101))
        #expect(try !bridges(", stale-if-error=x", "", 101))
    }
}
