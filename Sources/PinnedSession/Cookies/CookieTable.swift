import FoundationEssentials

/// The cookies of a store, by their domains, within its bounds.
struct CookieTable {
    static let mostOfDomain = 50
    static let most = 3000

    struct Kept {
        var cookie: Cookie
        /// For the order of the field.
        let created: UInt64
        var used: UInt64
    }

    struct Key: Hashable {
        private let name: String
        private let path: String
        private let isHostOnly: Bool

        init(_ cookie: Cookie) {
            name = cookie.name
            path = cookie.path
            isHostOnly = cookie.isHostOnly
        }
    }

    private var domains: [String: [Key: Kept]] = [:]
    private var count = 0
    private var clock: UInt64 = 0

    private mutating func tick() -> UInt64 {
        clock += 1
        return clock
    }

    /// The oldest first.
    var all: [Cookie] {
        domains.values.flatMap(\.values).sorted { $0.created < $1.created }.map(\.cookie)
    }

    /// In the order of the field: longer paths first, then older cookies.
    mutating func take(for place: CookiePlace, at now: Date) -> [Cookie] {
        var found: [Kept] = []
        let instant = tick()
        for domain in place.domains {
            for (key, kept) in domains[domain] ?? [:] {
                let cookie = kept.cookie
                if cookie.isExpired(at: now) {
                    remove(key, of: domain)
                    continue
                }
                guard cookie.matches(host: place.host, isAddress: place.isAddress), place.isSecure || !cookie.isSecure,
                    cookie.matches(path: place.path[...])
                else { continue }
                domains[domain]?[key]?.used = instant
                found.append(kept)
            }
        }
        found.sort { one, other in
            let (first, second) = (one.cookie.path.utf8.count, other.cookie.path.utf8.count)
            return first == second ? one.created < other.created : first > second
        }
        return found.map(\.cookie)
    }

    /// One that this could shadow, set over https.
    func hasSecure(like cookie: Cookie) -> Bool {
        domains.values.contains { kept in
            kept.values.contains { known in
                let other = known.cookie
                return other.isSecure && other.name == cookie.name
                    && (other.domain == cookie.domain || Cookie.isBelow(other.domain, cookie.domain)
                        || Cookie.isBelow(cookie.domain, other.domain))
                    && other.matches(path: cookie.path[...])
            }
        }
    }

    mutating func set(_ cookie: Cookie, at now: Date) {
        let key = Key(cookie)
        let known = domains[cookie.domain]?[key]
        guard !cookie.isExpired(at: now) else { return remove(key, of: cookie.domain) }
        let instant = tick()
        if known == nil { count += 1 }
        domains[cookie.domain, default: [:]][key] = Kept(
            cookie: cookie, created: known?.created ?? instant, used: instant)
        if let of = domains[cookie.domain], of.count > Self.mostOfDomain {
            evict(from: [cookie.domain], at: now)
        }
        if count > Self.most { evict(from: Array(domains.keys), at: now) }
    }

    /// Removes the expired, or else the least recently used one; those without Secure first.
    private mutating func evict(from names: [String], at now: Date) {
        var candidate: (domain: String, key: Key, kept: Kept)?
        var hasExpired = false
        for domain in names {
            for (key, kept) in domains[domain] ?? [:] {
                if kept.cookie.isExpired(at: now) {
                    remove(key, of: domain)
                    hasExpired = true
                } else if let known = candidate?.kept {
                    let isWorse =
                        known.cookie.isSecure == kept.cookie.isSecure
                        ? kept.used < known.used : known.cookie.isSecure
                    if isWorse { candidate = (domain, key, kept) }
                } else {
                    candidate = (domain, key, kept)
                }
            }
        }
        if !hasExpired, let candidate { remove(candidate.key, of: candidate.domain) }
    }

    mutating func remove(_ key: Key, of domain: String) {
        guard domains[domain]?.removeValue(forKey: key) != nil else { return }
        count -= 1
        if domains[domain]?.isEmpty == true { domains[domain] = nil }
    }
}

extension CookiePlace {
    /// The host and the domains above it: their cookies may match.
    fileprivate var domains: [String] {
        guard !isAddress else { return [host] }
        var domains = [host]
        var rest = host[...]
        while let dot = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: dot)...]
            domains.append(String(rest))
        }
        return domains
    }
}
