import PinproxyEventLoop
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxyConfiguration
@testable import PinproxyRecords
@testable import PinproxySecurity
@testable import PinproxySession

/// Chains and sightings of hosts, without a network.
struct IncidentChains {
    static let now = CertificateTemplate.now
    let root: HeldCertificate

    init(_ name: String = "Test Root") throws { root = try .root(name) }

    /// The leaf and its issuer.
    func chain(_ names: String..., change: (inout CertificateTemplate) -> Void = { _ in }) throws -> [Certificate] {
        var template = CertificateTemplate.leaf(names[0])
        template.dnsNames = names
        change(&template)
        return try [root.issue(template), root].map { try Certificate(der: $0.der) }
    }

    /// The chain as these anchors verify it.
    func verified(_ chain: [Certificate]) throws -> VerifiedChain {
        let presented = PresentedChain(leaf: chain[0], rest: Array(chain.dropFirst()))
        let verdict = SecurityPolicy().evaluate(
            presented, host: .dns("api.test"), anchors: TrustAnchors([try Certificate(der: root.der)]), at: Self.now)
        return try #require(verdict.chain)
    }

    static func sighting(
        _ chain: [Certificate], of host: String = "api.test", pins: [String] = ["sha256/x"], isReported: Bool = false,
        address: String = "192.0.2.1", client: String? = nil, user: UInt32 = 1000, program: String = "/usr/bin/curl",
        fault: Sighting.Fault = .pin, verified: VerifiedChain? = nil, evidence: PeerEvidence? = nil
    ) throws -> Sighting {
        let address = SocketAddress(ip: try #require(IPAddress(address)), port: 443)
        let contact = OriginContact(
            address: address, answer: AddressAnswer([address.ip], from: NameSource(.hostsFile)),
            tls: NegotiatedTLS(version: .tls13, cipher: "TLS_AES_128_GCM_SHA256", group: "x25519"))
        let traits = ClientTraits(user: user, userName: "build", process: 7, executable: program, unit: "ci.service")
        return Sighting(
            host: host, port: 443, fault: fault, cause: "Certificate pinning failure for \(host)",
            isReported: isReported, entry: nil, pins: pins,
            presented: PresentedChain(leaf: chain[0], rest: Array(chain.dropFirst())), verified: verified,
            evidence: evidence,
            circumstances: Circumstances(contact, Requester(task: 5, client: nil, traits: traits)))
    }
}
