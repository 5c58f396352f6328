import TestAuthority
import Testing

@testable import TLS

/// Certificates put together around a key that is at hand.
@Suite struct AssemblyTests {
    static let root = Result { try HeldCertificate.root() }

    @Test(arguments: [TestKey.Kind.p256, .p384, .rsa(2048), .ed25519])
    func isTheSameCertificate(_ kind: TestKey.Kind) throws {
        let held = try Self.root.get().issue(
            .leaf("a.test", ipAddresses: ["::1"]).with {
                $0.key = kind
                // A date on each side of the change to GeneralizedTime.
                $0.notAfter = 2_600_000_000
                $0.subject = []
            })
        let key = try PrivateKey(pem: Array(held.keyPEM.utf8))
        let plain = try Certificate(der: held.der)
        let assembled = try Certificate(der: held.der, certifying: key)
        #expect((key.forCertificates != nil) == (kind == .p256 || kind == .p384))
        #expect(assembled.der == held.der)
        #expect(assembled == plain)
        #expect(assembled.sha256 == plain.sha256)
        #expect(assembled.publicKeyDER == plain.publicKeyDER)
        #expect(assembled.dnsNames == ["a.test"])
        #expect(assembled.notAfter == 2_600_000_000)
        #expect(assembled.serialNumber == plain.serialNumber)
        #expect(assembled.issuer == plain.issuer)
        #expect(assembled.keyDescription == plain.keyDescription)
        let anchors = TrustAnchors([try Certificate(der: Self.root.get().der)])
        let options = VerificationOptions(name: .dns("a.test"), time: CertificateTemplate.now)
        #expect(throws: Never.self) { try anchors.verify(PresentedChain(leaf: assembled), options: options).get() }
    }

    @Test func isShownInHandshakes() throws {
        let held = try Self.root.get().issue(.leaf("api.test"))
        let key = try PrivateKey(pem: Array(held.keyPEM.utf8))
        let identity = try Identity(chain: [Certificate(der: held.der, certifying: key)], key: key)
        let pair = try ConnectionPair(client: TLSClientContext(), server: TLSServerContext(), identity: identity)
        try pair.connect()
        #expect(pair.client.peerChain?.leaf.der == held.der)
    }

    @Test func forAnotherKeyItIsDecoded() throws {
        let held = try Self.root.get().issue(.leaf("a.test"))
        let certificate = try Certificate(der: held.der, certifying: PrivateKey.generateP256())
        #expect(certificate.publicKeyDER == held.key.publicKeyDER)
    }

    @Test func everyPrefixAndEveryChangedByteIsJudgedAsByDecoding() throws {
        let held = try Self.root.get().issue(.leaf("a.test"))
        let key = try PrivateKey(pem: Array(held.keyPEM.utf8))
        for count in 0..<held.der.count {
            #expect(throws: CertificateError.self) {
                try Certificate(der: Array(held.der[..<count]), certifying: key)
            }
        }
        for position in held.der.indices {
            var changed = held.der
            changed[position] ^= 0x11
            guard let certificate = try? Certificate(der: changed, certifying: key) else { continue }
            #expect(try certificate.der == Certificate(der: changed).der)
        }
    }
}
