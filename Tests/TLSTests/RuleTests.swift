import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// The requirements of RFC 5280 and the CA/Browser Forum's baseline on a server's chain. Each test has one fault, and
/// the error names it and the certificate.
@Suite struct RuleTests {
    static let now = CertificateTemplate.now
    static let day = CertificateTemplate.day

    /// A root and an issuer below it, both with P-256 keys.
    struct Bed: Sendable {
        let root: HeldCertificate
        let issuer: HeldCertificate

        init() throws {
            root = try HeldCertificate.root()
            issuer = try root.issue(.intermediate("Issuer"))
        }

        static let shared = Result { try Bed() }
    }

    let bed: Bed

    init() throws { bed = try Bed.shared.get() }

    struct Fault: Sendable, CustomTestStringConvertible {
        let name: String
        let reason: VerificationFailure.Reason
        /// The words of the message.
        let words: String
        let change: @Sendable (inout CertificateTemplate) -> Void
        var testDescription: String { name }

        init(
            _ name: String, _ reason: VerificationFailure.Reason, _ words: String,
            _ change: @escaping @Sendable (inout CertificateTemplate) -> Void
        ) {
            self.name = name
            self.reason = reason
            self.words = words
            self.change = change
        }
    }

    // MARK: Leaf and intermediate

    static let both: [Fault] = [
        Fault("unknown critical extension", .malformed, "unhandled critical extension") {
            $0.extensions = [("1.2.3.4", true, DERWriter.null)]
        },
        Fault("an extension twice", .malformed, "has the extension 1.2.3.4 twice") {
            $0.extensions = [("1.2.3.4", false, DERWriter.null), ("1.2.3.4", false, DERWriter.null)]
        },
        Fault("a known extension twice", .malformed, "twice") {
            $0.extensions = [("2.5.29.19", true, DERWriter.sequence())]
        },
        Fault("EKU of a client", .wrongPurpose, "") { $0.extendedKeyUsage = [CertificateTemplate.clientAuth] },
        Fault("EKU any alone", .wrongPurpose, "") { $0.extendedKeyUsage = ["2.5.29.37.0"] },
        Fault("EKU Netscape SGC alone", .wrongPurpose, "extendedKeyUsage") {
            $0.extendedKeyUsage = ["2.16.840.1.113730.4.1"]
        },
        Fault("EKU Microsoft SGC alone", .wrongPurpose, "extendedKeyUsage") {
            $0.extendedKeyUsage = ["1.3.6.1.4.1.311.10.3.3"]
        },
        Fault("serial zero", .malformed, "serial number") { $0.serialContents = [0] },
        Fault("serial negative", .malformed, "serial number") { $0.serialContents = [0x80, 1] },
        Fault("serial of 21 octets", .malformed, "serial number") {
            $0.serialContents = [UInt8](repeating: 1, count: 21)
        },
        Fault("version 1", .malformed, "X509v3") { $0.version = 0 },
        Fault("version 2", .malformed, "X509v3") { $0.version = 1 },
        Fault("ends before it begins", .expired, "") {
            $0.notBefore = now - day
            $0.notAfter = now - 2 * day
        },
        Fault("RSA 1024", .weakKey, "RSA 1024") { $0.key = .rsa(1024) },
        Fault("RSA 2040", .weakKey, "RSA 2040") { $0.key = .rsa(2040) },
        Fault("secp256k1", .weakKey, "EC secp256k1") { $0.key = .secp256k1 },
        Fault("signed with SHA-1", .weakSignature, "") { $0.digest = .sha1 },
        Fault("other algorithm inside than outside", .malformed, "signature algorithm") { $0.claimedDigest = .sha384 },
    ]

    @Test(arguments: both)
    func leaf(_ fault: Fault) throws {
        let leaf = try bed.issuer.issue(.leaf("api.test").with(fault.change))
        check(verify(leaf), fault, depth: 0, subject: "CN=api.test")
    }

    @Test(arguments: both)
    func intermediate(_ fault: Fault) throws {
        let issuer = try bed.root.issue(.intermediate("Bad").with(fault.change))
        check(verify(try issuer.issue(.leaf("api.test"))), fault, depth: 1, subject: "CN=Bad")
    }

    // MARK: Leaf

    static func names(_ names: (tag: UInt8, bytes: [UInt8])...) -> @Sendable (inout CertificateTemplate) -> Void {
        let value = DERWriter.sequence(
            DERWriter.value(0x82, Array("api.test".utf8)), names.flatMap { DERWriter.value($0.tag, $0.bytes) })
        return { $0.subjectAltName = value }
    }

    static func dns(_ name: String) -> @Sendable (inout CertificateTemplate) -> Void { names((0x82, Array(name.utf8))) }

    static let leaves: [Fault] = [
        Fault("an authority", .wrongPurpose, "it is an authority's, not a server's") {
            $0.basicConstraints = .authority(pathLength: nil)
            $0.keyUsage = [.digitalSignature, .keyCertSign]
        },
        Fault("no SAN", .malformed, "it has no subjectAltName") { $0.dnsNames = [] },
        Fault("an empty SAN", .malformed, "Empty Subject Alternative Name") {
            $0.subjectAltName = DERWriter.sequence()
        },
        Fault("a broken SAN", .malformed, "its X509v3 Subject Alternative Name can't be read") {
            $0.subjectAltName = [0x30, 0x05, 0x82]
        },
        Fault("an IPv4 address as dNSName", .malformed, "dNSName 192.0.2.1", dns("192.0.2.1")),
        Fault("an IPv6 address as dNSName", .malformed, "dNSName 2001:db8::1", dns("2001:db8::1")),
        Fault("an empty dNSName", .malformed, "dNSName", dns("")),
        Fault("a dNSName with NUL", .malformed, #"dNSName api.test\x00.evil"#, dns("api.test\0.evil")),
        Fault("a dNSName with a control", .malformed, #"dNSName a\x0a.test"#, dns("a\n.test")),
        Fault("a dNSName beyond ASCII", .malformed, #"dNSName \xc3\xa4.test"#, dns("ä.test")),
        Fault("a dNSName with a space", .malformed, "dNSName a b.test", dns("a b.test")),
        Fault("a dNSName with a leading dot", .malformed, "dNSName .test", dns(".test")),
        Fault("an empty label", .malformed, "dNSName a..test", dns("a..test")),
        Fault("an address of 3 bytes", .malformed, "iPAddress of 3 bytes", names((0x87, [1, 2, 3]))),
        Fault(
            "an address with its mask", .malformed, "iPAddress of 8 bytes", names((0x87, [1, 2, 3, 4, 255, 0, 0, 0]))),
        Fault("an address of no bytes", .malformed, "iPAddress of 0 bytes", names((0x87, []))),
        Fault("keyUsage for nothing of TLS", .wrongPurpose, "") { $0.keyUsage = [.nonRepudiation] },
        Fault("keyUsage for static RSA", .wrongPurpose, "its keyUsage doesn't have digitalSignature") {
            $0.key = .rsa(2048)
            $0.keyUsage = [.keyEncipherment]
        },
        Fault("keyUsage for static ECDH", .wrongPurpose, "its keyUsage doesn't have digitalSignature") {
            $0.keyUsage = [.keyAgreement]
        },
        Fault("keyCertSign without CA", .malformed, "") { $0.keyUsage = [.digitalSignature, .keyCertSign] },
        Fault("RSA with exponent 1", .weakKey, "exponent") { $0.publicKeyDER = rsa(bits: 2048, exponent: [1]) },
        Fault("RSA with an even exponent", .weakKey, "exponent") {
            $0.publicKeyDER = rsa(bits: 2048, exponent: [1, 0, 0])
        },
        Fault("RSA with a long exponent", .weakKey, "exponent") {
            $0.publicKeyDER = rsa(bits: 2048, exponent: [1, 0, 0, 0, 1])
        },
        Fault("RSA 8200", .weakKey, "RSA 8200") { $0.publicKeyDER = rsa(bits: 8200, exponent: [1, 0, 1]) },
        Fault("DSA", .weakKey, "DSA 2048") { $0.publicKeyDER = dsa() },
        Fault("a key that can't be read", .weakKey, "unreadable key") {
            $0.publicKeyDER = DERWriter.sequence(
                DERWriter.sequence(DERWriter.identifier("1.2.3.4")), DERWriter.bits([1]))
        },
        Fault("version 1 without extensions", .malformed, "it is of version 1, not 3") {
            $0.version = 0
            $0.omitsExtensions = true
        },
        Fault("MD5", .weakSignature, "") { $0.digest = .md5 },
    ]

    @Test(arguments: leaves)
    func serversOwn(_ fault: Fault) throws {
        // MD5 works with RSA only.
        let issuer =
            try fault.name == "MD5" ? bed.root.issue(.intermediate("RSA").with { $0.key = .rsa(2048) }) : bed.issuer
        let leaf = try issuer.issue(.leaf("api.test").with(fault.change))
        check(verify(leaf, name: nil), fault, depth: 0, subject: "CN=api.test")
    }

    @Test func explicitCurveParameters() throws {
        let key = try OpenSSLCommand.run(
            [
                "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt",
                "ec_param_enc:explicit",
            ],
            input: [])
        let publicKey = try OpenSSLCommand.run(["pkey", "-pubout", "-outform", "DER"], input: key)
        let leaf = try bed.issuer.issue(.leaf("api.test").with { $0.publicKeyDER = publicKey })
        #expect(throws: CertificateError.costly(CertificateLimitsTests.ownCurve)) { try Certificate(der: leaf.der) }
    }

    // MARK: What is allowed

    static let allowed: [@Sendable (inout CertificateTemplate) -> Void] = [
        { $0.extendedKeyUsage = [] }, { $0.keyUsage = nil },
        { $0.keyUsage = [.digitalSignature, .keyEncipherment, .keyAgreement] },
        { $0.extendedKeyUsage = [CertificateTemplate.clientAuth, CertificateTemplate.serverAuth] },
        { $0.basicConstraints = .none }, { $0.key = .p521 }, { $0.key = .rsa(3072) }, { $0.serialContents = [1] },
        { $0.serialContents = [UInt8](repeating: 0x7F, count: 20) }, dns("_sip.api.test"), dns("*.api.test"),
        dns("*"), dns("*.test"), names((0x81, Array("a@b.test".utf8)), (0x87, [192, 0, 2, 1])),
        { $0.extensions = [("1.2.3.4", false, DERWriter.null)] },
    ]

    @Test(arguments: allowed.indices)
    func variations(_ index: Int) throws {
        #expect(failure(verify(try bed.issuer.issue(.leaf("api.test").with(Self.allowed[index]))))?.message == nil)
    }

    /// An anchor is its owner's decision, whatever its certificate says.
    @Test func oldAnchors() throws {
        let old = try HeldCertificate.selfSigned(
            CertificateTemplate(commonName: "Old Root").with {
                $0.serialContents = [0]
                $0.digest = .sha1
                $0.extendedKeyUsage = ["2.16.840.1.113730.4.1"]
                $0.basicConstraints = .authority(pathLength: nil)
                $0.keyUsage = [.keyCertSign]
            })
        let leaf = try old.issue(.leaf("api.test"))
        #expect(failure(verify(leaf, anchor: old))?.message == nil)
        let weak = try HeldCertificate.selfSigned(.root("Weak Root").with { $0.key = .rsa(2040) })
        #expect(failure(verify(try weak.issue(.leaf("api.test")), anchor: weak))?.reason == .weakKey)
    }

    @Test func aPinnedSelfSignedCertificate() throws {
        let authority = try HeldCertificate.selfSigned(
            .root("api.test").with {
                $0.dnsNames = ["api.test"]
                $0.keyUsage = [.keyCertSign, .digitalSignature]
            })
        #expect(failure(verify(authority, anchor: authority, partial: true))?.message == nil)
        // Its key must still be allowed to sign.
        let encipherer = try HeldCertificate.selfSigned(
            .leaf("api.test").with {
                $0.key = .rsa(2048)
                $0.keyUsage = [.keyEncipherment]
            })
        #expect(failure(verify(encipherer, anchor: encipherer, partial: true))?.reason == .wrongPurpose)
        #expect(failure(verify(encipherer, anchor: encipherer))?.reason == .wrongPurpose)
    }

    // MARK: Lifetime

    @Test(arguments: [(Int64(60 * day + 1), true), (60 * day, false)])
    func lifetime(_ maximum: Int64, _ fits: Bool) throws {
        // Sixty days, the last second included.
        let leaf = try bed.issuer.issue(.leaf("api.test"))
        let failure = failure(verify(leaf, maximumLifetime: maximum))
        #expect(failure?.reason == (fits ? nil : .lifetimeTooLong))
        if !fits {
            #expect(
                failure?.message
                    == """
                    certificate is valid for 61 days (2029-12-02 to 2030-01-31), and at most 60 are accepted \
                    (CN=api.test)
                    """
            )
        }
    }

    // MARK: Bed

    private func check(
        _ result: Result<VerifiedChain, VerificationFailure>, _ fault: Fault, depth: Int, subject: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        guard let failure = failure(result) else {
            Issue.record("accepted: \(fault.name)", sourceLocation: sourceLocation)
            return
        }
        #expect(failure.reason == fault.reason, "\(failure.message)", sourceLocation: sourceLocation)
        #expect(failure.message.contains(fault.words), "\(failure.message)", sourceLocation: sourceLocation)
        #expect(failure.message.contains(subject), "\(failure.message)", sourceLocation: sourceLocation)
        #expect(failure.depth == depth, "\(failure.message)", sourceLocation: sourceLocation)
    }

    private func verify(
        _ leaf: HeldCertificate, name: ServerName? = .dns("api.test"), anchor: HeldCertificate? = nil,
        partial: Bool = false, maximumLifetime: Int64? = nil
    ) -> Result<VerifiedChain, VerificationFailure> {
        do {
            let presented = PresentedChain(
                leaf: try Certificate(der: leaf.der),
                rest: try leaf.chain.dropFirst().map { try Certificate(der: $0.der) })
            var options = VerificationOptions(name: name, time: Self.now, allowsPartialChain: partial)
            options.maximumLeafLifetime = maximumLifetime
            return TrustAnchors([try Certificate(der: (anchor ?? bed.root).der)]).verify(presented, options: options)
        } catch {
            Issue.record(error)
            return .failure(.outOfMemory)
        }
    }

    private func failure(_ result: Result<VerifiedChain, VerificationFailure>) -> VerificationFailure? {
        if case .failure(let failure) = result { failure } else { nil }
    }

    /// A made-up key that nobody could sign with.
    private static func rsa(bits: Int, exponent: [UInt8]) -> [UInt8] {
        DERWriter.rsa(modulus: [UInt8](repeating: 0xC3, count: bits / 8), exponent: exponent)
    }

    private static func dsa() -> [UInt8] {
        let (long, short) = ([UInt8](repeating: 0xC3, count: 256), [UInt8](repeating: 0xC3, count: 32))
        return DERWriter.sequence(
            DERWriter.sequence(
                DERWriter.identifier("1.2.840.10040.4.1"),
                DERWriter.sequence(DERWriter.integer(long), DERWriter.integer(short), DERWriter.integer(2))),
            DERWriter.bits(DERWriter.integer(Array(long.dropLast()) + [1])))
    }
}
