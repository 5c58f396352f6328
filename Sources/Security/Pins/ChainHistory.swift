package import PinproxyTLS

/// The verified chains that hosts presented, for making pins. Nothing here is ever trusted.
package struct ChainHistory: Codable, Sendable, Equatable {
    /// One certificate of a chain.
    package struct Link: Codable, Sendable, Equatable {
        package let subject: String
        package let issuer: String
        /// `sha256/…` of the key.
        package let key: String
        /// `cert-sha256/…` of the certificate.
        package let certificate: String
        package let notAfter: UnixTime
    }

    package struct Chain: Codable, Sendable, Equatable {
        package let links: [Link]
        /// The value of the pin that it last matched.
        package fileprivate(set) var matched: String?
        package fileprivate(set) var count: Int
        package fileprivate(set) var first: UnixTime
        package fileprivate(set) var last: UnixTime
    }

    package struct Host: Codable, Sendable, Equatable {
        package let name: String
        package let port: UInt16
        package fileprivate(set) var chains: [Chain]
    }

    package private(set) var hosts: [String: Host] = [:]
    /// The end of a request to record every host's chains.
    package var learnsUntil: UnixTime?

    package init() {}

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        hosts = try values.decode([String: Host].self, forKey: .hosts)
        learnsUntil = try values.decodeIfPresent(UnixTime.self, forKey: .learnsUntil)
        guard let place = hosts.first(where: { !$0.value.chains.allSatisfy(\.isSound) })?.key else { return }
        throw DecodingError.dataCorruptedError(
            forKey: .hosts, in: values,
            debugDescription: "a chain of \(place) has a count or a date out of bounds, or a pin that is not one")
    }

    /// More hosts are not recorded.
    package static let maximumHosts = 2000
    /// Chains per host; the one unseen for longest makes room.
    package static let maximumChains = 8
    /// Characters of a name; certificates have no limit.
    package static let longestName = 200

    /// A chain's record, made before the history is locked.
    package static func links(of chain: VerifiedChain) -> [Link] { chain.certificates.map(Link.init) }

    /// Records a chain. False if there is no room for another host.
    package mutating func record(
        _ links: [Link], matching pin: Pin?, of name: String, port: UInt16, at time: UnixTime
    ) -> Bool {
        let place = "\(name):\(port)"
        guard hosts[place] != nil || hosts.count < Self.maximumHosts else { return false }
        var host = hosts[place] ?? Host(name: name, port: port, chains: [])
        if let index = host.chains.firstIndex(where: { $0.links == links }) {
            host.chains[index].count += 1
            host.chains[index].last = time
            host.chains[index].matched = pin?.description
        } else {
            if host.chains.count >= Self.maximumChains,
                let oldest = host.chains.indices.min(by: { host.chains[$0].last < host.chains[$1].last })
            {
                host.chains.remove(at: oldest)
            }
            host.chains.append(
                Chain(links: links, matched: pin?.description, count: 1, first: time, last: time))
        }
        hosts[place] = host
        return true
    }

    package mutating func forget() {
        hosts = [:]
    }
}

extension ChainHistory.Link {
    init(_ certificate: Certificate) {
        subject = String(certificate.subject.prefix(ChainHistory.longestName))
        issuer = String(certificate.issuer.prefix(ChainHistory.longestName))
        key = Pin(.spki(certificate.spkiSHA256), origin: "").description
        self.certificate = Pin(.certificate(certificate.sha256, nil), origin: "").description
        notAfter = certificate.notAfter
    }
}

extension ChainHistory.Chain {
    /// Plausible numbers, and pins without line breaks, which would add lines to the pin file.
    fileprivate var isSound: Bool {
        HistoryBounds.admit(counts: count) && HistoryBounds.admit(dates: first, last)
            && links.allSatisfy { link in
                (try? Pin(text: link.key, for: .publicKey)) != nil
                    && (try? Pin(text: link.certificate, for: .certificate)) != nil
            }
    }
}
