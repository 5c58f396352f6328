import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Name constraints apply to the requested name and to everything that a wildcard may stand for, not only to the names
/// as a certificate writes them (RFC 5280 section 4.2.1.10; CVE-2025-61727).
@Suite struct NameConstraintTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let names: [String]
        var addresses: [String] = []
        let asked: ServerName
        let constraints: [UInt8]
        let fits: Bool
        let testDescription: String

        init(
            _ description: String, names: [String] = [], addresses: [String] = [], asked: ServerName,
            _ constraints: [UInt8],
            fits: Bool
        ) {
            testDescription = description
            self.names = names
            self.addresses = addresses
            self.asked = asked
            self.constraints = constraints
            self.fits = fits
        }
    }

    static let cases: [Case] = [
        Case(
            "a wildcard that stands for an excluded name", names: ["*.example.test"], asked: .dns("bar.example.test"),
            excluded(dns: "bar.example.test"), fits: false),
        Case(
            "the same, asked for another name", names: ["*.example.test"], asked: .dns("foo.example.test"),
            excluded(dns: "bar.example.test"), fits: false),
        Case(
            "the same beside an exact name", names: ["foo.example.test", "*.example.test"],
            asked: .dns("foo.example.test"), excluded(dns: "bar.example.test"), fits: false),
        Case(
            "in other letters", names: ["*.Example.test"], asked: .dns("bar.example.test"),
            excluded(dns: "BAR.example.TEST"), fits: false),
        Case(
            "one of many excluded names", names: ["*.example.test"], asked: .dns("bar.example.test"),
            excluded(dns: "a.test", "b.test", "bar.example.test"), fits: false),
        Case(
            "a name that is excluded two labels below", names: ["*.example.test"], asked: .dns("bar.example.test"),
            excluded(dns: "a.bar.example.test"), fits: true),
        Case(
            "a wildcard beside an excluded name", names: ["*.example.test"], asked: .dns("bar.example.test"),
            excluded(dns: "bar.other.test"), fits: true),
        Case(
            "a wildcard within an excluded domain", names: ["*.example.test"], asked: .dns("bar.example.test"),
            excluded(dns: "example.test"), fits: false),
        Case(
            "a wildcard below an excluded domain with a dot", names: ["*.example.test"],
            asked: .dns("bar.example.test"),
            excluded(dns: ".example.test"), fits: false),
        Case(
            "names below a name that the wildcard stands for", names: ["*.example.test"],
            asked: .dns("bar.example.test"), excluded(dns: ".bar.example.test"), fits: true),
        Case(
            "an exact name that is excluded", names: ["bar.example.test"], asked: .dns("bar.example.test"),
            excluded(dns: "bar.example.test"), fits: false),
        Case(
            "a wildcard of which one name is permitted", names: ["*.example.test"], asked: .dns("bar.example.test"),
            permitted(dns: "bar.example.test"), fits: false),
        Case(
            "a wildcard within a permitted domain", names: ["*.example.test"], asked: .dns("bar.example.test"),
            permitted(dns: "example.test"), fits: true),
        Case(
            "everything excluded", names: ["bar.example.test"], asked: .dns("bar.example.test"), excluded(dns: ""),
            fits: false),
        Case(
            "an excluded address", addresses: ["192.0.2.1"], asked: .ip("192.0.2.1"),
            excluded(ip: [192, 0, 2, 0, 255, 255, 255, 0]), fits: false),
        Case(
            "an address beside the excluded ones", addresses: ["192.0.2.1"], asked: .ip("192.0.2.1"),
            excluded(ip: [192, 0, 3, 0, 255, 255, 255, 0]), fits: true),
        Case(
            "an IPv4 address where IPv6 is permitted", addresses: ["192.0.2.1"], asked: .ip("192.0.2.1"),
            permitted(ip: [UInt8](repeating: 0, count: 32)), fits: false),
        Case(
            "an address where names are constrained", addresses: ["192.0.2.1"], asked: .ip("192.0.2.1"),
            permitted(dns: "example.test"), fits: true),
    ]

    /// On the anchor, on the issuer, critical and not.
    @Test(arguments: cases, [(true, true), (true, false), (false, true), (false, false)])
    func constrained(_ example: Case, _ place: (ofRoot: Bool, isCritical: Bool)) throws {
        let leaf = try Self.leaf(example.names, example.addresses, example.constraints, place.ofRoot, place.isCritical)
        for name in [example.asked, nil] {
            let failure = try Self.failure(leaf, name)
            #expect(failure?.reason == (example.fits ? nil : .nameConstraint), "\(failure?.message ?? "accepted")")
        }
    }

    @Test func anIPv4AddressInIPv6sFormIsThatAddress() throws {
        let excluded = Self.excluded(ip: [192, 0, 2, 0, 255, 255, 255, 0])
        for (address, fits) in [("::ffff:192.0.2.1", false), ("::ffff:192.0.3.1", true)] {
            let leaf = try Self.leaf([], [address], excluded, false, true)
            #expect(try Self.failure(leaf, .ip(address))?.reason == (fits ? nil : .nameConstraint))
        }
    }

    /// A CN never counts (RFC 9525), so constraints of DNS names don't apply to it. OpenSSL applies them where
    /// subjectAltName has no DNS name, as in the certificate of an address.
    @Test(
        arguments: ["router.outside.test", "192.0.2.1", "*.outside.test", "router"],
        [permitted(dns: "example.test"), excluded(dns: "outside.test"), excluded(dns: "")])
    func aCommonNameIsNoHostName(_ commonName: String, _ constraints: [UInt8]) throws {
        for ofRoot in [true, false] {
            let leaf = try Self.leaf([], ["192.0.2.1"], constraints, ofRoot, true, commonName: commonName)
            for name in [ServerName.ip("192.0.2.1"), nil] {
                let failure = try Self.failure(leaf, name)
                #expect(failure == nil, "\(failure?.message ?? "")")
            }
            // A DNS name in subjectAltName is still constrained.
            let named = try Self.leaf(
                ["router.outside.test"], ["192.0.2.1"], constraints, ofRoot, true, commonName: commonName)
            #expect(try Self.failure(named, .ip("192.0.2.1"))?.reason == .nameConstraint)
        }
    }

    @Test func theMessageNamesTheConstraintAndItsOwner() throws {
        let excluded = Self.excluded(dns: "bar.example.test")
        let wildcard = try Self.leaf(["*.example.test"], [], excluded, false, true)
        #expect(
            try Self.failure(wildcard, .dns("foo.example.test"))?.message
                == "certificate breaks the name constraints of CN=Issuer: its wildcard *.example.test matches "
                + "bar.example.test too, which is excluded (CN=Leaf)")
        let exact = try Self.leaf(["bar.example.test"], [], excluded, false, true)
        #expect(
            try Self.failure(exact, nil)?.message
                == "certificate breaks an issuer's name constraints: excluded subtree violation (CN=Leaf); "
                + "they are those of CN=Issuer")
    }

    static let unusable: [(String, [UInt8])] = [
        ("empty", DERWriter.sequence()),
        ("an empty list of permitted names", DERWriter.sequence(DERWriter.value(0xA0, []))),
        ("an empty list of excluded names", DERWriter.sequence(DERWriter.value(0xA1, []))),
        ("a good list and an empty one", DERWriter.sequence(good, DERWriter.value(0xA1, []))),
        ("no sequence", DERWriter.null),
        ("cut", [0x30, 0x05, 0xA0]),
        ("an address without its mask", excluded(ip: [192, 0, 2, 0])),
        ("a mask with holes", excluded(ip: [192, 0, 2, 0, 255, 0, 255, 0])),
        ("a name with a dot at its end", excluded(dns: "bar.example.test.")),
        ("a name with an empty label", excluded(dns: "bar..test")),
        ("a name with a wildcard", excluded(dns: "*.example.test")),
        ("a name beyond ASCII", excluded(dns: "ä.test")),
        ("a minimum", subtrees(0xA1, DERWriter.value(0x82, Array("a.test".utf8)) + DERWriter.value(0x80, [1]))),
        ("a maximum", subtrees(0xA1, DERWriter.value(0x82, Array("a.test".utf8)) + DERWriter.value(0x81, [0]))),
    ]

    private static let good = DERWriter.value(
        0xA0, DERWriter.sequence(DERWriter.value(0x82, Array("example.test".utf8))))

    /// Unintelligible constraints are not treated as absent.
    @Test(arguments: unusable, [(true, true), (true, false), (false, true), (false, false)])
    func malformed(_ example: (String, [UInt8]), _ place: (ofRoot: Bool, isCritical: Bool)) throws {
        let leaf = try Self.leaf(["bar.example.test"], [], example.1, place.ofRoot, place.isCritical)
        let failure = try #require(try Self.failure(leaf, .dns("bar.example.test")))
        #expect(failure.reason == .malformed, "\(failure.message)")
        #expect(failure.message.contains(place.ofRoot ? "CN=Root" : "CN=Issuer"), "\(failure.message)")
    }

    // MARK: Bed

    private static func leaf(
        _ names: [String], _ addresses: [String], _ constraints: [UInt8], _ ofRoot: Bool, _ isCritical: Bool,
        commonName: String = "Leaf"
    ) throws -> HeldCertificate {
        let constrain: (inout CertificateTemplate) -> Void = {
            $0.extensions = [("2.5.29.30", isCritical, constraints)]
        }
        let root = try HeldCertificate.selfSigned(ofRoot ? .root("Root").with(constrain) : .root("Root"))
        let issuer = try root.issue(ofRoot ? .intermediate("Issuer") : .intermediate("Issuer").with(constrain))
        return try issuer.issue(
            .leaf("placeholder.test").with {
                $0.commonName = commonName
                $0.dnsNames = names
                $0.ipAddresses = addresses
            })
    }

    private static func failure(_ leaf: HeldCertificate, _ name: ServerName?) throws -> VerificationFailure? {
        let chain = try leaf.chain.map { try Certificate(der: $0.der) }
        let anchors = TrustAnchors(try leaf.issuers.suffix(1).map { try Certificate(der: $0.der) })
        let options = VerificationOptions(name: name, time: CertificateTemplate.now)
        let result = anchors.verify(PresentedChain(leaf: chain[0], rest: Array(chain.dropFirst())), options: options)
        return if case .failure(let failure) = result { failure } else { nil }
    }

    private static func permitted(dns names: String...) -> [UInt8] {
        subtrees(0xA0, 0x82, names.map { Array($0.utf8) })
    }
    private static func excluded(dns names: String...) -> [UInt8] { subtrees(0xA1, 0x82, names.map { Array($0.utf8) }) }
    private static func permitted(ip base: [UInt8]) -> [UInt8] { subtrees(0xA0, 0x87, [base]) }
    private static func excluded(ip base: [UInt8]) -> [UInt8] { subtrees(0xA1, 0x87, [base]) }

    private static func subtrees(_ kind: UInt8, _ tag: UInt8, _ bases: [[UInt8]]) -> [UInt8] {
        DERWriter.sequence(DERWriter.value(kind, bases.flatMap { DERWriter.sequence(DERWriter.value(tag, $0)) }))
    }

    private static func subtrees(_ kind: UInt8, _ subtree: [UInt8]) -> [UInt8] {
        DERWriter.sequence(DERWriter.value(kind, DERWriter.sequence(subtree)))
    }
}
