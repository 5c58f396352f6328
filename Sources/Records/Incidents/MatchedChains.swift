import Security
package import TLS

/// The last chain of each host that met a pin: what an incident is compared with. Nothing here is ever trusted.
package struct MatchedChains: Codable, Sendable, Equatable {
    package struct Chain: Codable, Sendable, Equatable {
        /// The certificates as PEM, the leaf first.
        package let chain: [String]
        /// The pin that it met.
        package let pin: String
        package let first: UnixTime
        /// To the day: it isn't written more often.
        package internal(set) var last: UnixTime

        package var certificates: [Certificate] { Incident.certificates(chain) }

        var size: Int { chain.reduce(256) { $0 + $1.utf8.count } }
    }

    /// The least recent match makes room.
    package static let maximumHosts = 512
    package static let maximumBytes = 8 << 20
    /// Seconds.
    static let day: UnixTime = 86_400

    /// By `HOST:PORT`.
    package private(set) var hosts: [String: Chain] = [:]
    private var bytes = 0

    private enum CodingKeys: String, CodingKey { case hosts }

    package init() {}

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        hosts = try values.decode([String: Chain].self, forKey: .hosts)
        guard let broken = hosts.first(where: { !HistoryBounds.admit(dates: $0.value.first, $0.value.last) })?.key
        else {
            bytes = hosts.values.reduce(0) { $0 + $1.size }
            makeRoom(besides: nil)
            return
        }
        throw DecodingError.dataCorruptedError(
            forKey: .hosts, in: values, debugDescription: "a date of \(broken) is out of bounds")
    }

    package subscript(_ host: String, _ port: UInt16) -> Chain? { hosts[Sighting.place(host, port)] }

    mutating func record(_ chain: [String], pin: String, at place: String, time: UnixTime) {
        if var known = hosts[place], known.chain == chain, known.pin == pin {
            known.last = time
            hosts[place] = known
            return
        }
        bytes -= hosts[place]?.size ?? 0
        let fresh = Chain(chain: chain, pin: pin, first: time, last: time)
        bytes += fresh.size
        hosts[place] = fresh
        makeRoom(besides: place)
    }

    private mutating func makeRoom(besides place: String?) {
        while hosts.count > Self.maximumHosts || bytes > Self.maximumBytes {
            let others = hosts.filter { $0.key != place }
            guard let victim = others.min(by: { ($0.value.last, $0.key) < ($1.value.last, $1.key) }) else { return }
            hosts[victim.key] = nil
            bytes -= victim.value.size
        }
    }
}
