import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

/// What the public suite of cache tests (http-tests/cache-tests) requires of caches, and why.
@Suite struct PublicCasesTests {
    enum Use: String {
        /// The stored response is served.
        case reused
        /// It is stored, and validated with the origin before use.
        case validated
        case notStored
    }

    struct Case: CustomTestStringConvertible, Sendable {
        let reason: String
        let says: [String]
        let asks: [String]
        /// Seconds after the response.
        let later: Int64
        let status: Int
        let isShared: Bool
        let use: Use

        init(
            _ reason: String, _ says: [String], asks: [String] = [], later: Int64 = 3, status: Int = 200,
            isShared: Bool = false, _ use: Use
        ) {
            (self.reason, self.says, self.asks, self.later) = (reason, says, asks, later)
            (self.status, self.isShared, self.use) = (status, isShared, use)
        }

        var testDescription: String { reason }
    }

    /// A validator, which makes a stale response worth storing.
    private static let tag = "ETag: \"1\""
    private static let minute = "Mon, 12 Jan 1970 13:47:40 GMT"

    private static func control(_ reason: String, _ value: String, _ use: Use, isShared: Bool = false) -> Case {
        Case(reason, [tag, "Cache-Control: \(value)"], isShared: isShared, use)
    }

    private static let lifetimes = [
        control("a lifetime is used", "max-age=3600", .reused),
        control("0 is no lifetime", "max-age=0", .validated),
        control("a lifetime that is over", "max-age=3", .validated),
        control("31 bits and more", "max-age=2147483648", .reused),
        control("64 bits and more", "max-age=99999999999999999999999", .reused),
        control("negative numbers are none", "max-age=-3600", .validated),
        control("fractions are none", "max-age=3600.0", .validated),
        control("letters after a number", "max-age=3600a", .validated),
        control("single quotes are no quotes", "max-age='3600'", .validated),
        control("quotes may stand around a number", "max-age=\"3600\"", .reused),
        control("leading zeros change nothing", "max-age=003600", .reused),
        control("names have no case", "MaX-aGe=3600", .reused),
        control("blanks around = are tolerated", "max-age = 3600", .reused),
        control("an unknown directive changes nothing", "foobar, max-age=3600", .reused),
        control("an unknown one with a value changes nothing", "foobar=1, max-age=3600", .reused),
        control("a name inside another isn't it", "no-max-age=3600, max-agefoo=1", .validated),
        control("a quoted text isn't read", "foo=\"max-age=3600\"", .validated),
        control("nor is an escaped quote its end", "foo=\"\\\"max-age=3600\", bar", .validated),
        control("of several lifetimes the shortest", "max-age=3600, max-age=1", .validated),
        control("in any order", "max-age=1, max-age=3600", .validated),
        control("a private cache ignores s-maxage", "max-age=3600, s-maxage=0", .reused),
        control("a shared one doesn't", "max-age=3600, s-maxage=1", .validated, isShared: true),
        control("which comes before max-age", "s-maxage=3600, max-age=1", .reused, isShared: true),
        Case("Age counts", [tag, "Cache-Control: max-age=3600", "Age: 7200"], .validated),
        Case("an Age below the lifetime", ["Cache-Control: max-age=3600", "Age: 1800"], .reused),
        Case(
            "the first of several lines of Age", [tag, "Cache-Control: max-age=9", "Age: 7200", "Age: 0"], .validated),
        Case("the first of several members", ["Cache-Control: max-age=9", "Age: 0, 7200"], .reused),
        Case("an Age with a parameter isn't one", ["Cache-Control: max-age=9", "Age: 7200;foo=1"], .reused),
        Case("a negative one neither", ["Cache-Control: max-age=9", "Age: -7200"], .reused),
        Case(
            "a Date in the past counts as age",
            [
                tag, "Date: Mon, 12 Jan 1970 13:00:00 GMT", "Cache-Control: max-age=60",
            ], .validated),
        Case("lines make one list", [tag, "Cache-Control: max-age=3600", "Cache-Control: no-cache"], .validated),
        Case(
            "CDN-Cache-Control is for others",
            [
                tag, "Cache-Control: max-age=0", "CDN-Cache-Control: max-age=3600", "Surrogate-Control: max-age=3600",
            ], .validated),
        Case("Expires is used", ["Expires: \(minute)"], .reused),
        Case("Expires in the past", [tag, "Expires: Mon, 12 Jan 1970 13:46:00 GMT"], .validated),
        Case("Expires of the same second as Date", [tag, "Expires: \(Trial.date)"], .validated),
        Case("0 is in the past", [tag, "Expires: 0"], .validated),
        Case("max-age comes before Expires", ["Cache-Control: max-age=9", "Expires: 0"], .reused),
        Case("also if it is shorter", [tag, "Cache-Control: max-age=1", "Expires: \(minute)"], .validated),
        Case("s-maxage of a private cache doesn't", ["Cache-Control: s-maxage=1", "Expires: \(minute)"], .reused),
        Case("another time zone is no date", [tag, "Expires: Mon, 12 Jan 1970 13:47:40 CET"], .validated),
        Case("nor is an hour of one digit", [tag, "Expires: Mon, 12 Jan 1970 9:47:40 GMT"], .validated),
        Case("the form of RFC 850 is one", ["Expires: Monday, 12-Jan-70 13:47:40 GMT"], .reused),
        Case("and that of C", ["Expires: Mon Jan 12 13:47:40 1970"], .reused),
        Case("a heuristic lifetime", ["Last-Modified: Mon, 12 Jan 1970 13:45:00 GMT"], .reused),
        Case("that ends", ["Last-Modified: Mon, 12 Jan 1970 13:46:20 GMT"], .validated),
    ]

    private static let directives = [
        control("no-store", "no-store, max-age=9", .notStored),
        control("whatever its case", "No-StOrE, max-age=9", .notStored),
        control("whatever follows", "max-age=9, no-store=\"x\"", .notStored),
        control("no-cache asks each time", "no-cache, max-age=9", .validated),
        control("so does one with fields", "no-cache=\"x\", max-age=9", .validated),
        control("private is for one", "private, max-age=9", .reused),
        control("and not for all", "private, max-age=9", .notStored, isShared: true),
        control("a quoted directive isn't one", "max-age=9, foo=\"no-store, no-cache\"", .reused),
        control("must-revalidate while it is fresh", "max-age=9, must-revalidate", .reused),
        control("must-understand of a known status", "must-understand, no-store, max-age=9", .reused),
        Case("and of another", ["Cache-Control: must-understand, max-age=9"], status: 299, .notStored),
        Case("Pragma isn't freshness", [tag, "Pragma: no-cache"], .validated),
        Case("Pragma with Cache-Control is ignored", ["Pragma: no-cache", "Cache-Control: max-age=9"], .reused),
        Case(
            "a cookie is kept from a shared cache",
            [
                "Set-Cookie: a=b", "Cache-Control: max-age=9",
            ], isShared: true, .notStored),
        Case("what varies by everything", ["Vary: *", "Cache-Control: max-age=9"], .notStored),
        Case("wherever the star stands", ["Vary: , *, x", "Cache-Control: max-age=9"], .notStored),
        Case(
            "a page to be downloaded is a page",
            [
                "Content-Disposition: attachment", "Cache-Control: max-age=9",
            ], .reused),
    ]

    private static let month = "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT"

    private static let statuses =
        [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].flatMap {
            [
                Case("\($0) is cacheable by default", [month], status: $0, .reused),
                Case("\($0) has the lifetime it says", ["Cache-Control: max-age=3"], status: $0, later: 2),
            ]
        }
        + [201, 202, 302, 303, 307, 400, 403, 418, 422, 500, 502, 503, 504, 599].flatMap {
            [
                Case("\($0) isn't cacheable by default", [month], status: $0, .notStored),
                Case("\($0) is stored if it says so", ["Cache-Control: max-age=3"], status: $0, later: 2),
                Case(
                    "\($0) that is public has a heuristic lifetime", [month, "Cache-Control: public"], status: $0,
                    .reused),
            ]
        }
        + [304, 416, 428, 429, 431, 511].map {
            Case("\($0) is never stored", ["Cache-Control: max-age=9"], status: $0, .notStored)
        }

    private static func wish(_ reason: String, _ says: String, _ asks: String, later: Int64 = 3, _ use: Use) -> Case {
        Case(reason, [tag, "Cache-Control: \(says)"], asks: [asks], later: later, use)
    }

    private static let requests = [
        wish("a request's no-cache", "max-age=9", "Cache-Control: no-cache", .validated),
        wish("its Pragma", "max-age=9", "Pragma: no-cache", .validated),
        wish("its Pragma with Cache-Control", "max-age=9", "Cache-Control: a\r\nPragma: no-cache", .reused),
        wish("its max-age=0 at once", "max-age=9", "Cache-Control: max-age=0", later: 0, .validated),
        wish("its shorter max-age", "max-age=9", "Cache-Control: max-age=2", .validated),
        wish("its longer max-age makes nothing fresher", "max-age=1", "Cache-Control: max-age=9", .validated),
        wish("its max-stale", "max-age=1", "Cache-Control: max-stale=2", .reused),
        wish("too short a max-stale", "max-age=1", "Cache-Control: max-stale=1", .validated),
        wish("max-stale without an end", "max-age=1", "Cache-Control: max-stale", later: 1 << 33, .reused),
        wish(
            "max-stale of what must be revalidated", "max-age=1, must-revalidate", "Cache-Control: max-stale",
            .validated),
        wish("max-stale of what is no-cache", "max-age=9, no-cache", "Cache-Control: max-stale", .validated),
        wish("min-fresh that holds", "max-age=9", "Cache-Control: min-fresh=6", .reused),
        wish("min-fresh that doesn't", "max-age=9", "Cache-Control: min-fresh=7", .validated),
        wish(
            "min-fresh of what is stale", "max-age=1, stale-while-revalidate=9", "Cache-Control: min-fresh=0",
            .validated),
        wish("stale while it is revalidated", "max-age=1, stale-while-revalidate=9", "X: y", .reused),
        wish("not for longer", "max-age=1, stale-while-revalidate=2", "X: y", .validated),
        wish(
            "not past must-revalidate", "max-age=1, must-revalidate, stale-while-revalidate=9", "X: y", .validated),
        wish(
            "not if the client says how old", "max-age=1, stale-while-revalidate=9", "Cache-Control: max-age=5",
            .validated),
        wish(
            "but if it accepts stale ones too", "max-age=1, stale-while-revalidate=9",
            "Cache-Control: max-age=5, max-stale=0", .reused),
        wish("a precondition is the origin's", "max-age=9", "If-Match: \"1\"", .validated),
        wish("a date too", "max-age=9", "If-Unmodified-Since: \(Trial.date)", .validated),
    ]

    @Test(arguments: [lifetimes, directives, statuses, requests].flatMap(\.self))
    func itIsUsedAsItShould(_ trial: Case) throws {
        let dated = trial.says.contains { $0.hasPrefix("Date") } ? [] : ["Date: \(Trial.date)"]
        let traits = CachedTraits(try Trial.response(dated + trial.says, status: trial.status).view)
        let stored = try Trial.request()
        let refusal = Storability.refusal(
            of: traits, to: stored, isShared: trial.isShared, length: 1, mostLength: 1)
        guard refusal == nil else {
            #expect(trial.use == .notStored, "\(trial.reason): \(String(describing: refusal))")
            return
        }
        let times = ResponseTimes(requested: Trial.arrival, received: Trial.arrival)
        let choice = CacheChoice(
            traits, Freshness(traits, times, isShared: trial.isShared), isShared: trial.isShared)
        let head = "GET / HTTP/1.1\r\nHost: a\r\n" + trial.asks.map { $0 + "\r\n" }.joined() + "\r\n"
        let request = CacheRequest(try OwnedRequest(Array(head.utf8)).view)
        let use: Use =
            switch choice.answer(to: request, at: Trial.arrival + trial.later) {
            case .fresh, .stale: .reused
            case .ask: .validated
            case .unavailable: .notStored
            }
        #expect(use == trial.use, "\(trial.reason)")
    }
}

extension PublicCasesTests.Case {
    /// Used if it is needed `later`, and not a second after its lifetime.
    fileprivate init(_ reason: String, _ says: [String], status: Int, later: Int64) {
        self.init(reason, says, later: later, status: status, .reused)
    }
}
