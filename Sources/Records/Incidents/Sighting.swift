import Configuration
import EventLoop
import FoundationEssentials
import Security
import Session
import TLS

/// One connection to an origin that was refused or reported.
struct Sighting {
    let host: String
    let port: UInt16
    let kind: Incident.Kind
    let cause: String
    let isReported: Bool
    let entry: HostEntry?
    let pins: [String]
    /// What the server sent, which makes the incident's identity.
    let presented: PresentedChain
    let verified: VerifiedChain?
    let evidence: PeerEvidence?
    let circumstances: Circumstances

    var place: String { Self.place(host, port) }

    static func place(_ host: String, _ port: UInt16) -> String { "\(host):\(port)" }

    /// Equal for the same chain of the same host. Eighty bits: nobody finds a chain with the ID of another.
    static func id(of presented: PresentedChain, at place: String) -> String {
        let fingerprints = presented.certificates.prefix(Incident.mostCertificates).flatMap(\.sha256.bytes)
        return text(Array("\(place)\n".utf8) + fingerprints)
    }

    /// That of the incident which stands for a host's further chains.
    static func mergedID(at place: String) -> String { text(Array("\(place)\nfurther chains".utf8)) }

    private static func text(_ bytes: [UInt8]) -> String {
        SHA256Digest.of(bytes).bytes.prefix(10).map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }

    /// A new incident, without a connection yet.
    func incident(_ id: String, isMerged: Bool, at time: UnixTime) -> Incident {
        let chain = verified?.certificates ?? presented.certificates
        let kept = Incident.pem(of: chain)
        let timestamps = evidence?.timestamps.prefix(Incident.longestList).filter { $0.count <= 1024 } ?? []
        let response = evidence?.ocspResponse.flatMap { $0.count <= Incident.longestEvidence ? $0 : nil }
        return Incident(
            id: id, host: host, port: port, kind: kind, cause: Incident.cut(cause), entry: entry?.pattern,
            location: entry?.location, pins: Array(pins.prefix(Incident.longestList)), first: time, last: time,
            refused: 0, reported: 0, addresses: [], furtherAddresses: 0, askers: [], furtherAskers: 0, chain: kept,
            omitted: chain.count - kept.count, verified: verified != nil,
            timestamps: timestamps.map { Data($0).base64EncodedString() },
            ocspResponse: response.map { Data($0).base64EncodedString() }, merged: isMerged)
    }
}

extension Incident {
    /// Counts a connection.
    /// - Returns: whether its address is a new one.
    mutating func saw(_ sighting: Sighting, at time: UnixTime) -> Bool {
        if sighting.isReported { reported += 1 } else { refused += 1 }
        // The clock may have been set back.
        first = min(first, time)
        last = max(last, time)
        kind = sighting.kind
        cause = Self.cut(sighting.cause)
        entry = sighting.entry?.pattern
        location = sighting.entry?.location
        pins = Array(sighting.pins.prefix(Self.longestList))
        verification = sighting.circumstances.verification
        if let tls = sighting.circumstances.contact?.tls {
            (tlsVersion, cipher, tlsGroup) = ("\(tls.version)", tls.cipher, tls.group)
        }
        if let requester = sighting.circumstances.requester { note(requester, at: time) }
        return sighting.circumstances.contact.map { note($0, at: time) } ?? false
    }

    private mutating func note(_ contact: OriginContact, at time: UnixTime) -> Bool {
        let address = "\(contact.address)"
        let resolver = contact.source.map(Self.cut)
        if let index = addresses.firstIndex(where: { $0.address == address }) {
            addresses[index].count += 1
            addresses[index].last = time
            addresses[index].resolver = resolver ?? addresses[index].resolver
            return false
        }
        if addresses.count < Self.longestList {
            addresses.append(Address(address: address, resolver: resolver, count: 1, last: time))
        } else {
            furtherAddresses += 1
        }
        return true
    }

    private mutating func note(_ requester: Requester, at time: UnixTime) {
        let traits = requester.traits
        // Ports differ with each connection.
        let client = requester.client.map { $0.address.map { "\($0.ip)" } ?? "\($0)" }
        if let index = askers.firstIndex(where: {
            $0.client == client && $0.uid == traits?.user && $0.program == traits?.executable && $0.unit == traits?.unit
        }) {
            askers[index].count += 1
            askers[index].last = time
            askers[index].task = requester.task
        } else if askers.count < Self.longestList {
            askers.append(
                Asker(
                    client: client, uid: traits?.user, user: traits?.userName,
                    program: traits?.executable.map(Self.cut), unit: traits?.unit.map(Self.cut), task: requester.task,
                    count: 1, last: time))
        } else {
            furtherAskers += 1
        }
    }
}
