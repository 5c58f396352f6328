import PinproxySecurity
package import PinproxyTLS

/// A chain that a host presented and that was refused, or reported: what `pinproxy incidents` shows. Everything in it
/// may come from an attacker: texts are escaped when they are shown.
package struct Incident: Codable, Sendable, Equatable {
    package enum Kind: String, Codable, Sendable {
        /// The chain meets no pin.
        case pin
        /// The chain, its name, dates or status are not accepted, or the server's key is not proved.
        case trust
    }

    package struct Address: Codable, Sendable, Equatable {
        package let address: String
        /// The source of the address: `DNS server 192.0.2.53:53`.
        package internal(set) var resolver: String?
        package internal(set) var count: Int
        package internal(set) var last: UnixTime
    }

    /// A client that asked for the host: a program of a user, or an address if that isn't known.
    package struct Asker: Codable, Sendable, Equatable {
        package let client: String?
        package let uid: UInt32?
        package let user: String?
        package let program: String?
        package let unit: String?
        /// The last task's number.
        package internal(set) var task: UInt64
        package internal(set) var count: Int
        package internal(set) var last: UnixTime
    }

    package struct Acknowledgement: Codable, Sendable, Equatable {
        package let time: UnixTime
        /// The user who acknowledged it, in words.
        package let by: String
        /// The policy accepted the chain, and no person acknowledged it: refused again, the chain is news.
        package let isByPolicy: Bool
    }

    /// ``idLength`` hexadecimal digits, of the host, the chain and ``Sighting/Fault``.
    package let id: String
    package let host: String
    package let port: UInt16
    package let kind: Kind
    /// The server didn't prove that it holds the leaf's key: the chain may be a copy.
    package let unproven: Bool
    /// One line: why it was refused last.
    package internal(set) var cause: String
    /// The pattern and the place of the entry that decided last; nil: the defaults.
    package internal(set) var entry: String?
    package internal(set) var location: String?
    /// The entry's pins as they are written, of many the first ones.
    package internal(set) var pins: [String]
    package internal(set) var first: UnixTime
    package internal(set) var last: UnixTime
    /// Connections that were refused, and those that `enforcement: report` let through.
    package internal(set) var refused: Int
    package internal(set) var reported: Int
    package internal(set) var addresses: [Address]
    /// Connections to further addresses.
    package internal(set) var furtherAddresses: Int
    package internal(set) var askers: [Asker]
    /// Connections for further askers.
    package internal(set) var furtherAskers: Int
    /// The certificates as PEM, the leaf first: the verified chain if there is one, else as presented.
    package internal(set) var chain: [String]
    /// Certificates of the chain that were not kept.
    package internal(set) var omitted: Int
    package internal(set) var verified: Bool
    /// Signed certificate timestamps of the handshake (RFC 6962 section 3.3.1), and the stapled OCSP response as DER;
    /// all in Base64.
    package internal(set) var timestamps: [String]
    package internal(set) var ocspResponse: String?
    /// The TLS version of the last connection.
    package internal(set) var tlsVersion: String?
    package internal(set) var cipher: String?
    package internal(set) var tlsGroup: String?
    package internal(set) var verification: String?
    /// Whether it represents all further chains of a host that has presented too many.
    package internal(set) var merged: Bool
    /// The ID that the last chain of a merged incident would have alone.
    package internal(set) var variant: String?
    package internal(set) var acknowledged: Acknowledgement?

    /// The incident without its chain, for lists.
    package var withoutChain: Incident {
        var incident = self
        (incident.chain, incident.timestamps, incident.ocspResponse) = ([], [], nil)
        return incident
    }

    var fault: Sighting.Fault { unproven ? .unproven : kind == .pin ? .pin : .trust }
    package var isOpen: Bool { acknowledged == nil }
    package var isOnlyReported: Bool { refused == 0 }
    package var count: Int { refused + reported }
    /// `api.example.com`, with the port if it isn't 443.
    package var place: String { port == 443 ? host : "\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}

extension Incident {
    static let idLength = 20

    /// Makes all IDs. Eighty bits: finding a chain with another's ID is infeasible.
    static func id(of bytes: [UInt8]) -> String { String(SHA256Digest.of(bytes).hex.prefix(idLength)) }

    /// Whether it is an ID, or the beginning of one.
    static func isID(_ text: String, atLeast shortest: Int = idLength) -> Bool {
        (shortest...idLength).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
            }
    }

    /// Most items of its lists; more are counted.
    static let longestList = 16
    /// Most certificates of a chain that are kept.
    static let mostCertificates = 10
    static let longestChain = 128 << 10
    /// A leaf is kept whole beyond ``longestChain``, and then alone: up to what a handshake may bring.
    static let longestLeaf = 512 << 10
    static let longestEvidence = 64 << 10
    static let longestText = 512

    /// Bytes of its texts, about what the file takes.
    var size: Int {
        let texts =
            chain + timestamps + pins + addresses.flatMap { [$0.address, $0.resolver ?? ""] }
            + askers.flatMap { [$0.client ?? "", $0.user ?? "", $0.program ?? "", $0.unit ?? ""] }
            + [host, cause, entry ?? "", location ?? "", ocspResponse ?? ""]
        return texts.reduce(1024) { $0 + $1.utf8.count } + (addresses.count + askers.count) * 128
    }

    /// Plausible numbers, and lists within their bounds.
    var isSound: Bool {
        Self.isID(id) && HistoryBounds.admit(counts: refused, reported, furtherAddresses, furtherAskers, omitted)
            && addresses.allSatisfy { HistoryBounds.admit(counts: $0.count) && HistoryBounds.admit(dates: $0.last) }
            && askers.allSatisfy { HistoryBounds.admit(counts: $0.count) && HistoryBounds.admit(dates: $0.last) }
            && HistoryBounds.admit(dates: first, last, acknowledged?.time)
            && addresses.count <= Self.longestList && askers.count <= Self.longestList
            && chain.count <= Self.mostCertificates
    }

    var latestDate: UnixTime {
        max(last, addresses.map(\.last).max() ?? last, askers.map(\.last).max() ?? last)
    }

    /// Later dates become `time`.
    func dated(before time: UnixTime) -> Incident {
        var incident = self
        incident.first = min(first, time)
        incident.last = min(last, time)
        for index in addresses.indices { incident.addresses[index].last = min(addresses[index].last, time) }
        for index in askers.indices { incident.askers[index].last = min(askers[index].last, time) }
        return incident
    }

    /// The certificates; those that can't be read are left out.
    package var certificates: [Certificate] { Self.certificates(chain) }

    package static func certificates(_ chain: [String]) -> [Certificate] {
        chain.compactMap { try? Certificate(derOrPEM: Array($0.utf8)) }
    }

    /// The first certificates of a chain as PEM, within the bounds of an incident.
    static func pem(of chain: [Certificate]) -> [String] {
        var bytes = 0
        var kept: [String] = []
        for certificate in chain.prefix(mostCertificates) {
            let pem = certificate.pem
            bytes += pem.utf8.count
            guard bytes <= (kept.isEmpty ? longestLeaf : longestChain) else { break }
            kept.append(pem)
        }
        return kept
    }

    static func cut(_ text: String) -> String {
        text.utf8.count <= longestText ? text : String(decoding: text.utf8.prefix(longestText), as: UTF8.self) + "…"
    }
}
