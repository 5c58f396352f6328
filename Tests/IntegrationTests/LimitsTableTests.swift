import Foundation
import Testing

/// Every limit of one request or response. Just below it and at it an exchange succeeds; above it, it is refused with
/// the documented status and cause. `limits.clients` is in ``LimitTests``, `limits.bodies` in ``KeptBodiesTests``,
/// `limits.minimum_rate` in ``MinimumRateTests``.
@Suite(.sharedBed(LimitsBed.prepare), .timeLimit(.minutes(5)))
struct LimitsTableTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    struct Limit: Sendable, CustomTestStringConvertible {
        let name: String
        let most: Int
        /// The status above the limit, and a word of the reason.
        let status: Int
        let reason: String
        /// A request with this much of what is limited.
        let request: @Sendable (_ count: Int, _ url: String) -> String
        var testDescription: String { name }
    }

    static let limits: [Limit] = [
        Limit(name: "limits.request_head", most: 32 << 10, status: 431, reason: "head") { count, url in
            padded("GET \(url)/echo HTTP/1.1\r\nHost: a\r\n", to: count)
        },
        Limit(name: "fields of a request", most: 1000, status: 431, reason: "1000 field") { count, url in
            "GET \(url)/echo HTTP/1.1\r\nHost: a\r\n" + fields(count - 1) + "\r\n"
        },
        Limit(name: "limits.response_head", most: 16 << 10, status: 502, reason: "head") { count, url in
            answer(padded("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", to: count), url)
        },
        Limit(name: "fields of a response", most: 1000, status: 502, reason: "1000 field") { count, url in
            answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + fields(count - 1) + "\r\n", url)
        },
        Limit(name: "session.max_redirects", most: 3, status: 502, reason: "redirect") { count, url in
            "GET \(url)/redirect/" + Array(repeating: "302", count: count).joined(separator: ",")
                + "/echo HTTP/1.1\r\nHost: a\r\n\r\n"
        },
        Limit(name: "response.max_body", most: 1000, status: 502, reason: "1000") { count, url in
            answer(RuleBed.response(String(repeating: "x", count: count), type: "text/plain"), url, rule: "short")
        },
        Limit(name: "limits.inspected_body", most: 4096, status: 502, reason: "Body of") { count, url in
            answer(RuleBed.response("\"" + String(repeating: "x", count: count - 2) + "\""), url, rule: "json")
        },
        Limit(name: "limits.replay_body", most: 8192, status: 502, reason: "limits.replay_body") { count, url in
            "POST \(url)/redirect/307/echo HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n"
                + String(repeating: "x", count: count)
        },
    ]

    private static func fields(_ count: Int) -> String { String(repeating: "X:\r\n", count: max(count, 0)) }

    /// A head of exactly this many bytes.
    private static func padded(_ head: String, to count: Int) -> String {
        head + "X-Long: " + String(repeating: "x", count: max(count - head.utf8.count - 12, 0)) + "\r\n\r\n"
    }

    private static func answer(_ message: String, _ url: String, rule: String = "none") -> String {
        "GET \(url)\(RuleBed.answer(rule, message)) HTTP/1.1\r\nHost: a\r\n\r\n"
    }

    @Test(arguments: limits, [-1, 0, 1])
    func atAndBeside(_ limit: Limit, _ beside: Int) async throws {
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send(limit.request(limit.most + beside, shared.plainURL))
        let answer = try await connection.response()
        if beside <= 0 {
            #expect(answer.status == 200, "\(answer)")
        } else {
            #expect(answer.status == limit.status, "\(answer)")
            #expect(
                answer["proxy-status"]?.contains(limit.reason) == true || answer.body.contains(limit.reason),
                "\(answer)")
        }
    }
}

private enum LimitsBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await RuleBed.prepare(
            bed,
            rules: [
                "{path: /answer/short/**, response: {max_body: 1000}}",
                "{path: /answer/json/**, response: {serializer: json}}",
            ], extra: ["session: {redirects: follow, max_redirects: 3}"],
            sections: [
                "limits": ["request_head: 32KiB", "response_head: 16KiB", "inspected_body: 4KiB", "replay_body: 8KiB"]
            ])
    }
}
