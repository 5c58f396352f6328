internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxySession

/// The session rules for an exchange, in words.
struct ExpectedExchange {
    private let rules: SessionRules
    private let written: Set<String>
    /// Path and query of the request; nil: none was asked about.
    private let path: String?

    /// Nil if nothing is written that changes how exchanges are made.
    init?(_ rules: SessionRules, keys: [LaidKey], path: String?) {
        self.rules = rules
        written = Set(keys.map(\.name))
        self.path = path
        guard !facts.isEmpty else { return nil }
    }

    /// The destination of the request with `http://`; nil: its own URL.
    var base: String? {
        rules.baseURL?.url(of: Array((path ?? "").utf8)[...]).map { String(decoding: $0, as: UTF8.self) }
    }

    var lines: [String] {
        let width = facts.map(\.name.count).max() ?? 0
        return ["", "How the exchange would be made:"]
            + facts.map { "  \($0.name.padded(to: width))  \($0.text)" }
    }

    private var facts: [(name: String, text: String)] {
        SessionRules.Key.allCases.compactMap { key in
            guard written.contains("session.\(key.rawValue)") else { return nil }
            return fact(key)
        }
    }

    private var reach: String {
        switch rules.followTo {
        case .anywhere: "anywhere"
        case .named([]): "within one origin"
        case .named(let patterns):
            "within one origin and to \(patterns.map(\.description).joined(separator: ", ").printable)"
        }
    }

    /// Nil where the key changes nothing, or is shown with another.
    private func fact(_ key: SessionRules.Key) -> (name: String, text: String)? {
        switch key {
        case .timeout:
            ("time", "ended after \(rules.text(of: .timeout)) without a byte in either direction")
        case .redirects:
            switch rules.redirects {
            case .pass: nil
            case .follow:
                (
                    "redirects",
                    "followed \(reach), at most \(rules.maxRedirects), each by the policy, pins and rules of its host; "
                        + "never from https to http, and not for browsers"
                )
            case .refuse: ("redirects", "refused: a client gets 502")
            }
        case .credentials:
            rules.credentials.map {
                let reach = $0.allowsHTTP ? "over http too: insecure" : "over https only"
                return ("challenges", "Basic and Digest are answered as \($0.user.printable), \(reach)")
            }
        case .resume:
            (
                "downloads",
                rules.resume
                    ? "continued if interrupted (GET, with a strong validator and byte ranges)"
                    : "not continued if interrupted"
            )
        case .coalesce:
            rules.coalesce
                ? (
                    "in flight",
                    "identical GETs are coalesced" + rules.coalesceWith.map { ", with equal \($0) too" }.joined()
                ) : nil
        case .maxActive:
            rules.maxActive.map {
                let next =
                    rules.order == .fifo
                    ? "the one that has waited longest goes first" : "the last one to come goes first"
                return ("at one time", "\(Count($0, "exchange")); others wait, and \(next)")
            }
        case .baseURL where rules.baseURL == nil: nil
        case .baseURL:
            (
                "with http://",
                base.map { "goes to \($0.printable), by the policy, pins and rules of that host" }
                    ?? "400: the path leads above the base, as some servers read it"
            )
        case .http:
            rules.http.contains(.http2)
                ? ("HTTP", "the host is offered \(rules.http.map(\.rawValue).joined(separator: " and "))")
                : ("HTTP", "over HTTP/1.1, on a separate connection")
        case .ping:
            rules.ping == nil
                ? nil
                : ("asked", "every \(rules.text(of: .ping)) whether it lives, while requests are in flight over HTTP/2")
        case .allowWWAN: rules.allowWWAN ? nil : ("network", "refused while reachability says WWAN")
        default: nil
        }
    }
}

/// The requirements for a response, by the rules in force.
struct ExpectedResponse {
    private let rules: ResponseRules
    private let judge: ResponseJudge
    /// Bytes: `limits.inspected_body`.
    private let inspectedBody: Int

    /// Nil if the rules ask for nothing.
    init?(_ rules: ExchangeRules, inspectedBody: Int) {
        guard let judge = rules.judge else { return nil }
        self.rules = rules.response
        self.judge = judge
        self.inspectedBody = inspectedBody
    }

    private var readsBody: Bool {
        !rules.serializers.contains(.http) || rules.removeNullValues && rules.serializers.first != .http
    }

    // MARK: For people

    var lines: [String] {
        var lines = ["", "What the response must be:"]
        lines.append("  status        \(judge.statuses?.map(\.description).joined(separator: ", ") ?? "any")")
        let types = judge.contentTypes?.map(\.description).joined(separator: ", ")
        lines.append("  content type  \(types.map { "\($0), if there is a body" } ?? "any")")
        lines.append("  body          \(body)")
        if rules.removeNullValues { lines.append("  rewritten     null values are removed from JSON") }
        let failure =
            judge.isEnforced
            ? "a client gets 502" : "it is passed on, and serializer.report is logged (enforcement: report)"
        lines.append("  if it is not  \(failure)")
        return lines
    }

    private var body: String {
        var parts: [String] = []
        if readsBody {
            parts.append(rules.serializers.map(\.format).joined(separator: " or "))
            let beyond = rules.oversize == .refuse ? "refused" : "passed unjudged"
            parts.append("held back until it is judged; beyond \(Count(inspectedBody, "byte")) it is \(beyond)")
        } else {
            parts.append("any")
        }
        if rules.maxBody != nil { parts.append("at most \(rules.text(of: .maxBody))") }
        return parts.joined(separator: ", ")
    }

    // MARK: For programs

    struct Report: Encodable {
        /// Left out: any.
        let status: [String]?
        let contentTypes: [String]?
        let serializers: [String]
        let removeNullValues: Bool
        let maxBody: Int?
        let oversize: String
        let enforcement: String
    }

    var report: Report {
        Report(
            status: judge.statuses?.map(\.description), contentTypes: judge.contentTypes?.map(\.description),
            serializers: rules.serializers.map(\.rawValue), removeNullValues: rules.removeNullValues,
            maxBody: rules.maxBody,
            oversize: rules.oversize.rawValue, enforcement: rules.enforcement.rawValue)
    }
}
