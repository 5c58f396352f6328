import FoundationEssentials
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// One connection to an origin that was refused or reported.
struct Sighting {
    /// The kind of refusal. Each kind makes a separate incident: accepting a chain doesn't explain a server that showed
    /// it without its key, and acknowledging an expired chain is no word about a wrong pin.
    enum Fault: String, CaseIterable {
        case pin, trust
        /// The server didn't prove that it holds the leaf's key: the chain may be a copy.
        case unproven
    }

    let host: String
    let port: UInt16
    let fault: Fault
    let cause: String
    let isReported: Bool
    let entry: HostEntry?
    let pins: [String]
    /// The server's chain, which identifies the incident.
    let presented: PresentedChain
    let verified: VerifiedChain?
    let evidence: PeerEvidence?
    let circumstances: Circumstances
    /// The incident's, and that of the one for the host's further chains with this fault. Made here: hashing takes its
    /// time, and the history is locked while a sighting is recorded.
    let id: String
    let mergedID: String

    init(
        host: String, port: UInt16, fault: Fault, cause: String, isReported: Bool, entry: HostEntry?, pins: [String],
        presented: PresentedChain, verified: VerifiedChain?, evidence: PeerEvidence?, circumstances: Circumstances
    ) {
        self.host = host
        self.port = port
        self.fault = fault
        self.cause = cause
        self.isReported = isReported
        self.entry = entry
        self.pins = pins
        self.presented = presented
        self.verified = verified
        self.evidence = evidence
        self.circumstances = circumstances
        let place = Self.place(host, port)
        id = Self.id(of: presented, at: place, fault)
        mergedID = Incident.id(of: Array("\(place)\n\(fault.rawValue)\nfurther chains".utf8))
    }

    static func place(_ host: String, _ port: UInt16) -> String { "\(host):\(port)" }

    /// Equal for the same chain of the same host, refused for the same fault.
    static func id(of presented: PresentedChain, at place: String, _ fault: Fault) -> String {
        let fingerprints = presented.certificates.prefix(Incident.mostCertificates).flatMap(\.sha256.bytes)
        return Incident.id(of: Array("\(place)\n\(fault.rawValue)\n".utf8) + fingerprints)
    }

    /// A new incident, without a connection yet.
    func incident(_ id: String, isMerged: Bool, at time: UnixTime) -> Incident {
        var incident = Incident(
            id: id, host: host, port: port, kind: fault == .pin ? .pin : .trust, unproven: fault == .unproven,
            cause: Incident.cut(cause), entry: entry?.pattern, location: entry?.location,
            pins: Array(pins.prefix(Incident.longestList)), first: time, last: time, refused: 0, reported: 0,
            addresses: [], furtherAddresses: 0, askers: [], furtherAskers: 0, chain: [], omitted: 0, verified: false,
            timestamps: [], ocspResponse: nil, merged: isMerged)
        incident.takeChain(of: self)
        return incident
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
        // A merged one keeps the first of its chains.
        if !merged, verified != (sighting.verified != nil) { takeChain(of: sighting) }
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

    /// With what came beside it.
    fileprivate mutating func takeChain(of sighting: Sighting) {
        let certificates = sighting.verified?.certificates ?? sighting.presented.certificates
        chain = Self.pem(of: certificates)
        omitted = certificates.count - chain.count
        verified = sighting.verified != nil
        let evidence = sighting.evidence
        timestamps = (evidence?.timestamps.prefix(Self.longestList) ?? []).filter { $0.count <= 1024 }
            .map { Data($0).base64EncodedString() }
        ocspResponse = evidence?.ocspResponse.flatMap { $0.count <= Self.longestEvidence ? $0 : nil }
            .map { Data($0).base64EncodedString() }
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
        guard addresses.count < Self.longestList else {
            // Only their number is kept: the first ones show that there are many.
            furtherAddresses += 1
            return furtherAddresses == 1
        }
        addresses.append(Address(address: address, resolver: resolver, count: 1, last: time))
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
