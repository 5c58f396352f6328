/// One look-up: A and AAAA in parallel, then the search list's next name if neither exists. A value without I/O, driven
/// by `ResolverChannel`. Connecting may begin early (RFC 8305 section 3): with IPv6 addresses at once, with IPv4 ones
/// 50 ms later, so that a dropped query causes no delay.
struct NameLookup {
    enum Family: Equatable {
        case ipv4, ipv6
    }

    enum Reply: Equatable {
        /// At least one address; the time to live in seconds.
        case addresses([IPAddress], timeToLive: Int)
        case failed(ResolutionError)

        fileprivate var addresses: [IPAddress] {
            if case .addresses(let addresses, _) = self { addresses } else { [] }
        }

        /// Without addresses that weren't asked for: a server may answer AAAA with A records.
        fileprivate func limited(to family: Family, of name: String) -> Reply {
            guard case .addresses(let addresses, let timeToLive) = self else { return self }
            let asked = addresses.filter { $0.isIPv6 == (family == .ipv6) }
            return asked.isEmpty ? .failed(.noAddresses(name)) : .addresses(asked, timeToLive: timeToLive)
        }
    }

    enum Action: Equatable {
        case wait
        /// Query both families of this name. Answers about an earlier one are ignored.
        case ask(String)
        /// Call `delayPassed` after ``resolutionDelayNanoseconds``.
        case startDelay
        /// Begin with these; the result follows.
        case begin([IPAddress])
        case end(Reply)
    }

    /// RFC 8305 section 8: the Resolution Delay.
    static let resolutionDelayNanoseconds: UInt64 = 50_000_000

    private let name: String
    private var candidates: ArraySlice<String>
    private var ipv4: Reply?
    private var ipv6: Reply?
    private var hasBegun = false
    private var exists = false

    /// - Parameter candidates: names to query in order; at least one.
    init(_ name: String, candidates: [String]) {
        self.name = name
        self.candidates = candidates[...]
    }

    mutating func start() -> Action { askNext() }

    mutating func received(_ reply: Reply, _ family: Family) -> Action {
        let reply = reply.limited(to: family, of: name)
        switch family {
        case .ipv4: ipv4 = reply
        case .ipv6: ipv6 = reply
        }
        if let ipv4, let ipv6 { return concluded(ipv4, ipv6) }
        switch (family, reply) {
        case (.ipv6, .addresses(let addresses, _)):
            hasBegun = true
            return .begin(addresses)
        // A missing name has neither family (RFC 8020), but some servers say so of AAAA alone (RFC 4074 section 4.2).
        case (.ipv4, .addresses), (.ipv4, .failed(.notFound)): return .startDelay
        case (_, .failed): return .wait
        }
    }

    /// ``Action/startDelay`` has passed. Ignored after both answers.
    mutating func delayPassed() -> Action {
        guard let ipv4, ipv6 == nil, !hasBegun else { return .wait }
        switch ipv4 {
        case .addresses(let addresses, _):
            hasBegun = true
            return .begin(addresses)
        case .failed: return concluded(ipv4, ipv4)
        }
    }

    private mutating func askNext() -> Action {
        guard let next = candidates.popFirst() else {
            return .end(.failed(exists ? .noAddresses(name) : .notFound(name)))
        }
        ipv4 = nil
        ipv6 = nil
        return .ask(next)
    }

    private mutating func concluded(_ ipv4: Reply, _ ipv6: Reply) -> Action {
        var timeToLive = Int.max
        for case .addresses(_, let seconds) in [ipv4, ipv6] { timeToLive = min(timeToLive, seconds) }
        let addresses = ipv6.addresses + ipv4.addresses
        guard addresses.isEmpty else { return .end(.addresses(addresses, timeToLive: timeToLive)) }
        for case .failed(let error) in [ipv4, ipv6] {
            // A failed query leaves open whether the name exists.
            guard error.isAboutName else { return .end(.failed(error)) }
            if case .noAddresses = error { exists = true }
        }
        return askNext()
    }
}
