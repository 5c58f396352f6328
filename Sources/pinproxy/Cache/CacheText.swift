internal import FoundationEssentials
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxySecurity

/// The text output of `pinproxy cache`.
enum CacheText {
    static func bytes(_ count: Int) -> String { AmountText.bytes(UInt64(clamping: count)) }

    /// `73.1 %`
    static func percent(_ part: Double) -> String { "\((part * 100).text(decimals: 1)) %" }

    /// `45s`, `12m5s`, `3h5m`, `12d3h`; whole seconds.
    static func time(_ seconds: Int64) -> String {
        let seconds = max(0, seconds)
        func two(_ one: Int64, _ unit: String, _ other: Int64, _ less: String) -> String {
            "\(one)\(unit)" + (other > 0 ? "\(other)\(less)" : "")
        }
        if seconds < 60 { return "\(seconds)s" }
        if seconds < 3600 { return two(seconds / 60, "m", seconds % 60, "s") }
        if seconds < 86_400 { return two(seconds / 3600, "h", seconds % 3600 / 60, "m") }
        return two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h")
    }
}

extension CacheReport {
    var text: String {
        var lines = stores.map { store in
            "\(store.store): \(CacheText.bytes(store.bytes)) of \(Quantity.text(bytes: store.limit)), "
                + "\(Count(store.responses, "response"))"
        }
        let all = requests.hit + requests.miss + requests.revalidated + requests.stale
        if let ratio = requests.hitRatio {
            lines.append(
                "requests: \(all) since the start, \(CacheText.percent(ratio)) from the cache (\(requests.hit) hits, "
                    + "\(requests.revalidated) revalidated, \(requests.stale) stale, \(requests.miss) misses)")
            lines.append("saved: \(CacheText.bytes(requests.savedBytes)) that no origin had to send")
        } else {
            lines.append("requests: none to a host with a cache since the start")
        }
        if entries == 0 {
            lines.append("no entry enables the cache: write cache: memory or disk in the pin file (docs/cache.md)")
        }
        let width = origins.map { CacheText.bytes($0.bytes).count }.max() ?? 0
        if !origins.isEmpty { lines.append("largest origins:") }
        lines += origins.map { origin in
            let amount = CacheText.bytes(origin.bytes)
            let blank = String(repeating: " ", count: width - amount.count)
            return "  \(blank)\(amount)  \(origin.origin.printable) (\(Count(origin.responses, "response")))"
        }
        return lines.joined(separator: "\n")
    }
}

extension StoredResponses {
    var text: String {
        let shown = url.printable(longest: 1000)
        guard !responses.isEmpty else {
            return (["\(shown): nothing is stored"] + absence.map { "  \($0)" }).joined(separator: "\n")
        }
        return (["\(shown): \(Count(responses.count, "response"))"] + responses.flatMap(\.lines) + remarks)
            .joined(separator: "\n")
    }

    /// Why nothing more is stored, though responses are.
    private var remarks: [String] { refusal.map { ["nothing more is stored: \($0)".printable(longest: 1000)] } ?? [] }

    /// Why nothing is stored.
    private var absence: [String] {
        var lines: [String] = []
        if let refusal { lines.append(refusal) }
        if let store {
            lines.append("cache: \(store), \(shared == true ? "shared by all users" : "private to each user")")
        }
        if let objection, let objectionTime {
            let ago = CacheText.time(Int64(Date().timeIntervalSince1970) - objectionTime)
            lines.append("the last response that wasn't stored came \(ago) ago: \(objection)")
        } else if refusal == nil {
            lines.append("no response to GET since the start, or it was evicted")
        }
        if others > 0 {
            lines.append(
                "for the same path with other queries or ports, or the other scheme: \(Count(others, "response"))")
        }
        return lines.map { $0.printable(longest: 1000) }
    }
}

extension StoredResponseReport {
    var lines: [String] {
        var lines = [
            "  \(status), \(CacheText.bytes(bytes))\(partText), \(CacheText.time(age)) old, in \(store) for \(whose)",
            "    \(freshness)",
        ]
        if !vary.isEmpty { lines.append("    for requests with \(vary.map(\.text).joined(separator: ", "))") }
        lines.append("    \(vary.isEmpty ? "a GET" : "such a GET") \(fate)")
        return lines.map { $0.printable(longest: 1000) }
    }

    private var partText: String {
        guard let first, let last, let complete else { return "" }
        return " (bytes \(first) to \(last) of \(complete))"
    }

    private var whose: String {
        switch owner {
        case .everybody: "everybody"
        case .user: ownerName.map { "\($0) (user \(user ?? 0))" } ?? "user \(user ?? 0)"
        case .account: "the proxy's user \(ownerName ?? "")"
        }
    }

    /// Its remaining freshness, or when that ended, and the source of that.
    private var freshness: String {
        let reason =
            switch basis {
            case .sharedMaxAge: "s-maxage of \(CacheText.time(lifetime))"
            case .maxAge: "max-age of \(CacheText.time(lifetime))"
            case .expires: "Expires, \(CacheText.time(lifetime)) after its date"
            case .heuristic: "a tenth of the time since its last change, \(CacheText.time(lifetime))"
            case .none: "nothing says how long it is fresh"
            }
        if freshFor > 0 { return "fresh for \(CacheText.time(freshFor)) (\(reason))" }
        let since = Date(timeIntervalSinceNow: Double(freshFor))
        return "stale for \(CacheText.time(-freshFor)), since \(since.formatted(.iso8601)) (\(reason))"
    }

    /// The answer to a GET that selects it.
    var fate: String {
        switch answer {
        case .served: return "is answered with it"
        case .servedStale: return "is answered with it while the origin confirms it (stale-while-revalidate)"
        case .confirmed:
            let always = noCache ? ", at each use (no-cache)" : ""
            return "is answered with it once the origin has confirmed it by \(validator ?? "its validator")\(always)"
        case .fetched:
            if first != nil { return "goes to the origin: only a part is stored" }
            return "goes to the origin: without ETag and Last-Modified it can't be confirmed"
        case .policyChanged: return "goes to the origin: pins, trust or rules have changed since"
        case .verdictEnded:
            return "goes to the origin: the verdict on its server has expired, with a certificate or a pin"
        }
    }
}

extension StoredResponseReport.Field {
    /// `accept-language: de`
    fileprivate var text: String {
        if hidden { return "\(name): (not shown)" }
        return value.map { "\(name): \($0)" } ?? "no \(name)"
    }
}
