import PinproxySecurity
package import PinproxyTLS

/// The last chains of each host that matched a pin, for comparison with incidents. They are never trusted.
package struct MatchedChains: Codable, Sendable, Equatable {
    package struct Chain: Codable, Sendable, Equatable {
        /// The certificates as PEM, the leaf first.
        package let chain: [String]
        /// The leaf's SHA-256 in hexadecimal digits, so that a look-up decodes nothing.
        package let leaf: String
        /// The pin that it met.
        package let pin: String
        package let first: UnixTime
        /// To the day: it isn't written more often.
        package internal(set) var last: UnixTime

        package var certificates: [Certificate] { Incident.certificates(chain) }

        var size: Int { chain.reduce(256) { $0 + $1.utf8.count } }
    }

    /// The host with the least recent match makes room.
    package static let maximumHosts = 512
    package static let maximumBytes = 8 << 20
    /// Servers have a certificate for each kind of key, and front ends that are renewed one after the other.
    package static let leavesPerHost = 4
    /// Seconds.
    static let day: UnixTime = 86_400

    /// By `HOST:PORT`, the latest first.
    package private(set) var hosts: [String: [Chain]] = [:]
    private var bytes = 0

    private enum CodingKeys: String, CodingKey { case hosts }

    package init() {}

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        hosts = try values.decode([String: [Chain]].self, forKey: .hosts)
        guard let broken = hosts.first(where: { !Self.isSound($0.value) })?.key else {
            bytes = hosts.values.joined().reduce(0) { $0 + $1.size }
            makeRoom(besides: nil)
            return
        }
        throw DecodingError.dataCorruptedError(
            forKey: .hosts, in: values, debugDescription: "a date or the number of chains of \(broken) is out of bounds"
        )
    }

    private static func isSound(_ chains: [Chain]) -> Bool {
        (1...leavesPerHost).contains(chains.count)
            && chains.allSatisfy { HistoryBounds.admit(dates: $0.first, $0.last) }
    }

    /// The latest first.
    package subscript(_ host: String, _ port: UInt16) -> [Chain] { hosts[Sighting.place(host, port)] ?? [] }

    /// The one to compare a chain with: of the same leaf, else of its key, else of its issuer, else the latest.
    package func nearest(to chain: [Certificate], of host: String, _ port: UInt16) -> Chain? {
        let known = self[host, port].map { (chain: $0, certificates: $0.certificates) }
        guard known.count > 1, let leaf = chain.first else { return known.first?.chain }
        let alike =
            known.first { $0.certificates.first == leaf }
            ?? known.first { $0.certificates.first?.spkiSHA256 == leaf.spkiSHA256 }
            ?? known.first { leaf.hasIssuer(of: $0.certificates) } ?? known.first
        return alike?.chain
    }

    /// Whether this match would change nothing.
    func isFresh(_ leaf: String, pin: String, at place: String, time: UnixTime) -> Bool {
        hosts[place]?.contains {
            $0.leaf == leaf && $0.pin == pin && ($0.last..<$0.last + Self.day).contains(time)
        } ?? false
    }

    mutating func record(_ chain: [String], leaf: String, pin: String, at place: String, time: UnixTime) {
        var chains = hosts[place] ?? []
        bytes -= chains.reduce(0) { $0 + $1.size }
        let known = chains.firstIndex { $0.leaf == leaf }.map { chains.remove(at: $0) }
        let isSame = known.map { $0.chain == chain && $0.pin == pin } ?? false
        let first = isSame ? min(known?.first ?? time, time) : time
        chains.insert(Chain(chain: chain, leaf: leaf, pin: pin, first: first, last: time), at: 0)
        if chains.count > Self.leavesPerHost { chains.removeLast() }
        bytes += chains.reduce(0) { $0 + $1.size }
        hosts[place] = chains
        makeRoom(besides: place)
    }

    /// Whether ``settle(at:)`` has anything to do.
    func isUnsettled(at time: UnixTime) -> Bool {
        hosts.values.contains { $0.latest > time + SteadyClock.tolerance }
    }

    /// Moves dates of the future to the present: a wrong clock wrote them.
    mutating func settle(at time: UnixTime) {
        for (place, chains) in hosts where chains.latest > time {
            hosts[place] = chains.map {
                Chain(
                    chain: $0.chain, leaf: $0.leaf, pin: $0.pin, first: min($0.first, time), last: min($0.last, time))
            }
        }
    }

    private mutating func makeRoom(besides place: String?) {
        while hosts.count > Self.maximumHosts || bytes > Self.maximumBytes {
            let others = hosts.lazy.filter { $0.key != place }
            guard let victim = others.min(by: { ($0.value.latest, $0.key) < ($1.value.latest, $1.key) }) else { return }
            hosts[victim.key] = nil
            bytes -= victim.value.reduce(0) { $0 + $1.size }
        }
    }
}

extension [MatchedChains.Chain] {
    fileprivate var latest: UnixTime { map(\.last).max() ?? .min }
}

extension Certificate {
    /// Whether the key that signed the leaf of `chain` signed this one: names alone prove nothing.
    func hasIssuer(of chain: [Certificate]) -> Bool {
        if chain.count > 1 { return isSigned(by: chain[1]) }
        return chain.first.map { $0.isSelfIssued && isSigned(by: $0) } ?? false
    }
}
