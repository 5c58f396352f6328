import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// ML-DSA (RFC 9881), which OpenSSL has from 3.5 on: keys, certificates and handshakes.
@Suite(.enabled("OpenSSL is older than 3.5") { try OpenSSLCommand.knowsPostQuantumGroups })
struct PostQuantumTests {
    private static let sets = [44, 65, 87]

    private func failure(_ leaf: [UInt8], below root: HeldCertificate) throws -> VerificationFailure? {
        let presented = PresentedChain(leaf: try Certificate(der: leaf))
        let options = VerificationOptions(name: .dns("api.test"), time: CertificateTemplate.now)
        let anchors = TrustAnchors([try Certificate(der: root.der)])
        guard case .failure(let failure) = anchors.verify(presented, options: options) else { return nil }
        return failure
    }

    @Test(arguments: sets) func aKeyIsNamedAndPinned(_ set: Int) throws {
        let held = try HeldCertificate.selfSigned(.leaf("api.test").with { $0.key = .mlDSA(set) })
        let certificate = try Certificate(der: held.der)
        #expect(certificate.keyDescription == "ML-DSA-\(set)")
        let digest = try OpenSSLCommand.run(["dgst", "-sha256", "-binary"], input: held.key.publicKeyDER)
        #expect(certificate.spkiSHA256 == SHA256Digest(bytes: digest))
    }

    @Test(arguments: sets) func aChainHolds(_ set: Int) throws {
        let root = try HeldCertificate.selfSigned(.root("Root").with { $0.key = .mlDSA(set) })
        let leaf = try root.issue(.leaf("api.test").with { $0.key = .mlDSA(set) })
        #expect(try failure(leaf.der, below: root) == nil)
        // The last byte of a certificate belongs to its signature.
        var forged = leaf.der
        forged[forged.count - 1] ^= 1
        #expect(try failure(forged, below: root)?.reason == .badSignature)
    }

    /// SLH-DSA takes milliseconds and 17 KB for each signature, and no server on the web has it.
    @Test func otherAlgorithmsAreRefusedByName() throws {
        let root = try HeldCertificate.selfSigned(.root("Root").with { $0.key = .slhDSA })
        let failure = try #require(try failure(root.issue(.leaf("api.test")).der, below: root))
        #expect(failure.reason == .weakKey)
        #expect(failure.message.contains("has a key that isn't accepted: SLH-DSA-SHA2-128f"), "\(failure.message)")
    }

    @Test(arguments: sets) func aHandshake(_ set: Int) throws {
        let peers = try Peers()
        let leaf = try peers.root.issue(.leaf("api.test").with { $0.key = .mlDSA(set) })
        let pair = try ConnectionPair(
            client: peers.clientContext, server: peers.serverContext, identity: Peers.identity(leaf))
        try pair.connect()
        try pair.exchange()
    }

    /// TLS 1.2 has no ML-DSA.
    @Test func notInTLS12() throws {
        let peers = try Peers()
        let leaf = try peers.root.issue(.leaf("api.test").with { $0.key = .mlDSA(65) })
        let pair = try ConnectionPair(
            client: peers.clientContext, server: Peers.server(.tls12), identity: Peers.identity(leaf))
        #expect(pair.handshake().client.kind == .alertReceived(40))
    }
}
