import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

@Suite struct KeyTests {
    @Test(arguments: [TestKey.Kind.p256, .p384, .rsa(2048), .ed25519])
    func roundTrip(_ kind: TestKey.Kind) throws {
        let made = try TestKey(kind)
        let key = try PrivateKey(pem: Array(made.privateKeyPEM.utf8))
        #expect(key.publicKey.der == made.publicKeyDER)
        #expect(key.spkiSHA256 == SHA256Digest.of(made.publicKeyDER))
        #expect(key.pem == made.privateKeyPEM)
        #expect(try PublicKey(der: made.publicKeyDER) == key.publicKey)
        #expect(try PublicKey(pem: Array(made.publicKeyPEM.utf8)) == key.publicKey)
        #expect(key.publicKey != (try TestKey(kind)).public())
    }

    @Test(arguments: [TestKey.Kind.p256, .rsa(2048), .ed25519])
    func signaturesVerify(_ kind: TestKey.Kind) throws {
        // OpenSSL's verification checks the signature: the message is a certificate's body.
        let root = try HeldCertificate.selfSigned(.root("Signer").with { $0.key = kind })
        let key = try PrivateKey(pem: Array(root.keyPEM.utf8))
        let template = try root.issue(.leaf("sign.test")).der
        let parts = try #require(CertificateParts(template))
        let signed = DERWriter.sequence(parts.body, parts.algorithm, DERWriter.bits(try key.sign(parts.body)))
        let anchors = TrustAnchors([try Certificate(der: root.der)])
        let options = VerificationOptions(name: .dns("sign.test"), time: CertificateTemplate.now)
        let chain = PresentedChain(leaf: try Certificate(der: signed))
        #expect(throws: Never.self) { try anchors.verify(chain, options: options).get() }
    }

    @Test func signsFromManyThreads() async throws {
        let key = try PrivateKey.generateP256()
        let signatures = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for number in 0..<200 { group.addTask { try key.sign([UInt8(number)]) } }
            return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
        }
        #expect(signatures.count == 200)
    }

    @Test func generatedKeysDiffer() throws {
        let (one, other) = (try PrivateKey.generateP256(), try PrivateKey.generateP256())
        #expect(one.publicKey != other.publicKey)
        #expect(one.publicKey.keyDescription == "EC P-256")
        #expect(try PrivateKey(pem: Array(one.pem.utf8)).publicKey == one.publicKey)
    }

    @Test func keysThatCantBeRead() throws {
        let encrypted = try TestKey().privateKeyPEM(password: "secret")
        #expect(throws: KeyError.encrypted) { try PrivateKey(pem: Array(encrypted.utf8)) }
        for bytes in [[], Array("nothing".utf8), Array(try TestKey().publicKeyPEM.utf8)] {
            #expect(throws: KeyError.self) { try PrivateKey(pem: bytes) }
        }
        let der = try TestKey().publicKeyDER
        for count in 0..<der.count {
            #expect(throws: KeyError.self) { try PublicKey(der: Array(der[..<count])) }
        }
        #expect(throws: KeyError.self) { try PublicKey(der: der + [0]) }
        #expect(throws: KeyError.self) { try PublicKey(pem: der) }
    }

    @Test func identities() throws {
        let root = try HeldCertificate.root()
        let leaf = try root.issue(.leaf("id.test"))
        let key = try PrivateKey(pem: Array(leaf.keyPEM.utf8))
        let chain = try [leaf, root].map { try Certificate(der: $0.der) }
        #expect(try Identity(chain: chain, key: key).leaf == chain[0])
        #expect(throws: IdentityError.noCertificate) { try Identity(chain: [], key: key) }
        #expect(throws: IdentityError.keyMismatch(subject: "CN=Test Root")) {
            try Identity(chain: chain.reversed(), key: key)
        }
    }
}

extension TestKey {
    func `public`() -> PublicKey? { try? PublicKey(der: publicKeyDER) }
}

/// The three parts of a certificate's outer SEQUENCE, whole with their tags.
struct CertificateParts {
    let body: [UInt8]
    let algorithm: [UInt8]

    init?(_ der: [UInt8]) {
        var rest = der[...]
        guard let outer = Self.take(&rest)?.contents else { return nil }
        rest = outer
        guard let body = Self.take(&rest)?.whole, let algorithm = Self.take(&rest)?.whole else { return nil }
        self.body = Array(body)
        self.algorithm = Array(algorithm)
    }

    private static func take(
        _ bytes: inout ArraySlice<UInt8>
    ) -> (
        whole: ArraySlice<UInt8>, contents: ArraySlice<UInt8>
    )? {
        let start = bytes.startIndex
        guard bytes.count > 2 else { return nil }
        var header = 2
        var length = Int(bytes[start + 1])
        if length > 0x80 {
            let count = length - 0x80
            length = bytes[(start + 2)..<(start + 2 + count)].reduce(0) { $0 << 8 | Int($1) }
            header += count
        }
        let end = start + header + length
        guard end <= bytes.endIndex else { return nil }
        let whole = bytes[start..<end]
        bytes = bytes[end...]
        return (whole, whole[(start + header)...])
    }
}
