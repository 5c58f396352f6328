import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Which certificates are parsed at all.
@Suite struct CertificateLimitsTests {
    static let issuer = Result { try HeldCertificate.root("Issuer") }

    private func certificate(key: [UInt8]) throws -> [UInt8] {
        try Self.issuer.get().issue(.leaf("api.test").with { $0.publicKeyDER = key }).der
    }

    private func certificate(points: [UInt8]) throws -> [UInt8] {
        try Self.issuer.get().issue(
            .leaf("api.test").with { $0.extensions = [(CostlyCertificates.distributionPoints, false, points)] }
        ).der
    }

    private func fault(_ certificate: [UInt8]) -> CertificateLimits.Fault? {
        do {
            try CertificateLimits.check(certificate.span)
            return nil
        } catch { return error }
    }

    // MARK: Costly ones

    static let ownCurve = "its key has explicit curve parameters; only named curves are accepted"

    @Test(arguments: [
        (CostlyCertificates.explicitCurve(), ownCurve),
        // SM2, and an unassigned number.
        (CostlyCertificates.explicitCurve(algorithm: "1.2.156.10197.1.301"), ownCurve),
        (CostlyCertificates.explicitCurve(algorithm: "1.2.3.4"), ownCurve),
        (CostlyCertificates.compressedP224, "its key is a compressed point; only uncompressed points are accepted"),
        (CostlyCertificates.compressedP256, "its key is a compressed point; only uncompressed points are accepted"),
        (CostlyCertificates.hybridP256, "its key is a point in hybrid form; only uncompressed points are accepted"),
        (
            DERWriter.rsa(modulus: [UInt8](repeating: 0xC3, count: 8192), exponent: [1, 0, 1]),
            "its key has 8207 bytes; the limit is 4096"
        ),
    ])
    func keys(_ key: [UInt8], _ words: String) throws {
        let der = try certificate(key: key)
        #expect(fault(der) == .costly(words))
        let parsed = ParsedObjects.count { Result { try Certificate(der: der) } }
        #expect(throws: CertificateError.costly(words)) { try parsed.result.get() }
        #expect(parsed.certificates == 0)
        #expect(parsed.curveKeys == 0)
    }

    @Test(arguments: [1, 2000])
    func relativeDistributionPoints(_ count: Int) throws {
        let words = "its CRL distribution points are relative to the issuer's name (nameRelativeToCRLIssuer)"
        let points = CostlyCertificates.relativeDistributionPoints(count)
        #expect(fault(try certificate(points: points)) == .costly(words))
        // OpenSSL also accepts a list that is not marked as constructed.
        let unmarked = points.map { $0 == 0xA1 ? 0x81 : $0 }
        #expect(fault(try certificate(points: unmarked)) == .costly(words))
    }

    // MARK: The others

    @Test(arguments: [TestKey.Kind.p256, .p384, .p521, .secp256k1, .rsa(2048), .ed25519])
    func realKeys(_ kind: TestKey.Kind) throws {
        let held = try Self.issuer.get().issue(.leaf("api.test").with { $0.key = kind })
        #expect(fault(held.der) == nil)
        #expect(try Certificate(der: held.der).der == held.der)
    }

    /// Keys of unsupported algorithms cost nothing, and may be appended or in a trust store.
    @Test func otherAlgorithms() throws {
        func key(_ algorithm: String, _ parameters: [UInt8], _ bytes: [UInt8]) throws -> [UInt8] {
            try certificate(
                key: DERWriter.sequence(
                    DERWriter.sequence(DERWriter.identifier(algorithm), parameters), DERWriter.bits(bytes)))
        }
        let number = DERWriter.integer([UInt8](repeating: 0x55, count: 256))
        let keys = try [
            // DSA, Diffie-Hellman (X9.42), GOST, RSA-PSS without and with parameters, X25519, ML-DSA-87.
            key("1.2.840.10040.4.1", DERWriter.sequence(number, number, number), number),
            key("1.2.840.10046.2.1", DERWriter.sequence(number, number, number), number),
            key(
                "1.2.643.7.1.1.1.1",
                DERWriter.sequence(DERWriter.identifier("1.2.643.2.2.35.1"), DERWriter.identifier("1.2.643.7.1.1.2.2")),
                DERWriter.octets([UInt8](repeating: 7, count: 64))),
            key("1.2.840.113549.1.1.10", DERWriter.sequence(), number),
            key("1.2.840.113549.1.1.10", DERWriter.sequence(DERWriter.value(0xA0, DERWriter.sequence())), number),
            key("1.3.101.110", [], [UInt8](repeating: 9, count: 32)),
            key("2.16.840.1.101.3.4.3.19", [], [UInt8](repeating: 2, count: 2592)),
            certificate(key: CostlyCertificates.uncompressedP256),
        ]
        for key in keys { #expect(fault(key) == nil) }
    }

    @Test func usualDistributionPoints() throws {
        let address = DERWriter.value(0x86, Array("http://crl.test/ca.crl".utf8))
        let full = DERWriter.sequence(DERWriter.value(0xA0, DERWriter.value(0xA0, address)))
        let directory = DERWriter.value(
            0xA4,
            DERWriter.sequence(DERWriter.set(DERWriter.sequence(DERWriter.identifier("2.5.4.3"), DERWriter.utf8("x")))))
        let issuerOnly = DERWriter.sequence(DERWriter.value(0x81, [0, 0x40]), DERWriter.value(0xA2, directory))
        #expect(fault(try certificate(points: DERWriter.sequence(full, full))) == nil)
        #expect(fault(try certificate(points: DERWriter.sequence(issuerOnly, DERWriter.sequence()))) == nil)
        #expect(fault(try certificate(points: [0x30, 0x80, 0, 0])) == .notDER)
    }

    @Test func oldCertificates() throws {
        // Version 1 has no version, and version 2 has identifiers after the key.
        let first = try HeldCertificate.selfSigned(
            .root("Old").with {
                $0.version = 0
                $0.omitsExtensions = true
            })
        #expect(fault(first.der) == nil)
        let number = DERWriter.integer(1)
        let algorithm = DERWriter.sequence(DERWriter.identifier("1.2.840.10045.4.3.2"))
        func second(_ key: [UInt8]) -> [UInt8] {
            DERWriter.sequence(
                DERWriter.sequence(
                    DERWriter.value(0xA0, number), number, algorithm, DERWriter.sequence(), DERWriter.sequence(),
                    DERWriter.sequence(), key, DERWriter.value(0x81, [0, 1]), DERWriter.value(0x82, [0, 1])), algorithm,
                DERWriter.bits([1]))
        }
        #expect(fault(second(CostlyCertificates.uncompressedP256)) == nil)
        #expect(fault(second(CostlyCertificates.explicitCurve())) == .costly(Self.ownCurve))
    }

    /// The machine's own bundle passes: nothing that is refused is in use.
    @Test func theSystemsAnchors() throws {
        let anchors = try TrustAnchors.system()
        #expect(anchors.certificates.count > 50)
    }

    // MARK: Broken ones

    @Test func everyPrefix() throws {
        let whole = try certificate(points: CostlyCertificates.relativeDistributionPoints(1))
        for count in 0..<whole.count { #expect(fault(Array(whole[..<count])) == .notDER) }
        #expect(fault(whole + [0]) == .notDER)
    }

    /// Lengths that another parser might accept.
    @Test func whatIsNotDER() throws {
        let good = try certificate(key: CostlyCertificates.uncompressedP256)
        let contents = Array(good[4...])
        for length in [
            [0x80], [0x83, 0, good[2], good[3]], [0x84, 0, 0, good[2], good[3]], [0xFF], [0x85, 0, 0, 0, 0, 1],
        ] as [[UInt8]] {
            #expect(fault([0x30] + length + contents) == .notDER)
        }
        #expect(fault([0x3F] + good[1...]) == .notDER)
        #expect(fault([0x10] + good[1...]) == .notDER)
        let long = CostlyCertificates.uncompressedP256
        // The algorithm's length in two bytes, where one does.
        let padded = DERWriter.value(0x30, [0x30, 0x81] + long[3...])
        #expect(fault(try certificate(key: padded)) == .notDER)
    }

    /// Every byte is changed: whatever is still parsed has no costly key. The bytes that specify the kind of key take
    /// every value.
    @Test(arguments: [CostlyCertificates.explicitCurve(), CostlyCertificates.compressedP256])
    func everyChangedByte(_ key: [UInt8]) throws {
        let whole = try certificate(key: key)
        let start = try #require(whole.indices.first { whole[$0...].starts(with: key) })
        var parsed = 0
        for index in whole.indices {
            let isForm = start..<(start + 48) ~= index
            for value in isForm
                ? Array(0...255) : [0, 0x30, 0x80, 0xA0, whole[index] ^ 1, whole[index] ^ 0x20] as [UInt8]
            {
                var bytes = whole
                bytes[index] = value
                if looksCheap(bytes) { parsed += 1 }
            }
        }
        #expect(parsed > 0)
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func randomChanges(_ seed: UInt64) throws {
        var chance = Chance(seed: seed)
        let whole = try certificate(key: CostlyCertificates.explicitCurve())
        let points = try certificate(points: CostlyCertificates.relativeDistributionPoints(3))
        for round in 0..<3000 {
            var bytes = round % 2 == 0 ? whole : points
            for _ in 0...Int.random(in: 0..<4, using: &chance) {
                let index = Int.random(in: bytes.indices, using: &chance)
                switch Int.random(in: 0..<3, using: &chance) {
                case 0: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &chance)
                case 1: bytes[index] = UInt8.random(in: 0...255, using: &chance)
                default: bytes.removeSubrange(index..<min(index + 3, bytes.count))
                }
            }
            _ = looksCheap(bytes)
        }
    }

    /// Parses what may be parsed. Records an issue if the key should have been refused.
    private func looksCheap(_ bytes: [UInt8]) -> Bool {
        guard fault(bytes) == nil, let certificate = try? Certificate(der: bytes) else { return false }
        let key = certificate.keyDescription
        #expect(key != "EC with its own curve", "\(bytes)")
        // An elliptic key ends in its point: 65 bytes of P-256 without compression.
        if key == "EC P-256" {
            #expect(certificate.publicKeyDER.dropFirst(certificate.publicKeyDER.count - 65).first == 4, "\(bytes)")
        }
        return true
    }
}
