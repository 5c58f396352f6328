internal import Configuration
internal import Security
internal import Session

/// How an exchange would be made by the session rules in force: what is written, in words.
struct ExpectedExchange {
    private let rules: SessionRules
    /// The names of the keys that are written.
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

    /// Where the request would go if it were made with `http://`; nil: where it says.
    var base: String? {
        rules.baseURL?.url(of: Array((path ?? "").utf8)[...]).map { String(decoding: $0, as: UTF8.self) }
    }

    var lines: [String] {
        let width = facts.map(\.name.count).max() ?? 0
        return ["", "How the exchange would be made:"]
            + facts.map { "  \($0.name.padding(to: width))  \($0.text)" }
    }

    private var facts: [(name: String, text: String)] {
        SessionRules.Key.allCases.compactMap { key in
            guard written.contains("session.\(key.rawValue)") else { return nil }
            return fact(key)
        }
    }

    /// Where redirects are followed to.
    private var reach: String {
        switch rules.followTo {
        case .anywhere: "anywhere"
        case .named([]): "within one origin"
        case .named(let patterns):
            "within one origin and to \(patterns.map(\.description).joined(separator: ", ").printable)"
        }
    }

    /// Nil where the key changes nothing, or is told with another.
    private func fact(_ key: SessionRules.Key) -> (name: String, text: String)? {
        switch key {
        case .timeout:
            ("time", "ended after \(rules.text(of: .timeout)) without a byte in either direction")
        case .redirects:
            switch rules.redirects {
            case .pass: nil
            case .follow:
                ("redirects",
                    "followed \(reach), at most \(rules.maxRedirects), each by the policy, pins and rules of its host; "
                        + "never from https to http, and not for browsers")
            case .refuse: ("redirects", "refused: a client is told 502")
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
                    ? "continued if they break off (GET, with a strong validator and byte ranges)" : "not continued if they break off"
            )
        case .coalesce:
            rules.coalesce
                ? ("in flight", "identical GETs are made once" + rules.coalesceWith.map { ", with equal \($0) too" }.joined()) : nil
        case .maxActive:
            rules.maxActive.map {
                let next = rules.order == .fifo ? "the one that has waited longest goes first" : "the last one to come goes first"
                return ("at one time", "\(Count($0, "exchange")); others wait, and \(next)")
            }
        case .baseURL where rules.baseURL == nil: nil
        case .baseURL:
            ("with http://", base.map { "goes to \($0.printable), by the policy, pins and rules of that host" }
                ?? "400: the path leads above the base, as some servers read it")
        case .allowWWAN: rules.allowWWAN ? nil : ("network", "refused while reachability says WWAN")
        default: nil
        }
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
