import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Which names a certificate is good for.
@Suite struct NameTests {
    static let root = Result { try HeldCertificate.root() }

    struct Case: Sendable, CustomTestStringConvertible {
        let names: [String]
        var addresses: [String] = []
        let asked: ServerName
        let fits: Bool
        var testDescription: String { "\(names + addresses) for \(asked): \(fits)" }
    }

    static let cases: [Case] = [
        Case(names: ["api.test"], asked: .dns("api.test"), fits: true),
        Case(names: ["API.Test"], asked: .dns("api.test"), fits: true),
        Case(names: ["a.test", "b.test"], asked: .dns("b.test"), fits: true),
        Case(names: ["api.test"], asked: .dns("test"), fits: false),
        Case(names: ["api.test"], asked: .dns("x.api.test"), fits: false),
        Case(names: ["*.api.test"], asked: .dns("x.api.test"), fits: true),
        Case(names: ["*.api.test"], asked: .dns("api.test"), fits: false),
        Case(names: ["*.api.test"], asked: .dns("y.x.api.test"), fits: false),
        Case(names: ["x*.api.test"], asked: .dns("xy.api.test"), fits: false),
        Case(names: ["*y.api.test"], asked: .dns("xy.api.test"), fits: false),
        Case(names: ["x.*.api.test"], asked: .dns("x.y.api.test"), fits: false),
        Case(names: ["*"], asked: .dns("test"), fits: false),
        Case(names: ["*.test"], asked: .dns("api.test"), fits: false),
        Case(names: ["xn--strae-oqa.test"], asked: .dns("xn--strae-oqa.test"), fits: true),
        Case(names: ["api.test"], asked: .dns(""), fits: false),
        Case(names: ["x.api.test"], asked: .dns(".api.test"), fits: false),
        Case(names: ["api.test"], asked: .dns("api.test\0.evil.test"), fits: false),
        Case(names: [], addresses: ["192.0.2.1"], asked: .ip("192.0.2.1"), fits: true),
        Case(names: [], addresses: ["192.0.2.1"], asked: .ip("192.0.2.2"), fits: false),
        Case(names: [], addresses: ["2001:db8::1"], asked: .ip("2001:db8::1"), fits: true),
        Case(names: [], addresses: ["2001:db8::1"], asked: .ip("2001:DB8:0:0::1"), fits: true),
        Case(names: ["192.0.2.1"], asked: .ip("192.0.2.1"), fits: false),
        Case(names: ["*.0.2.1"], asked: .ip("192.0.2.1"), fits: false),
        Case(names: ["api.test"], asked: .ip("not an address"), fits: false),
    ]

    @Test(arguments: cases)
    func names(_ example: Case) throws {
        let root = try Self.root.get()
        let leaf = try root.issue(
            .leaf("placeholder.test").with {
                $0.commonName = "Leaf"
                $0.dnsNames = example.names
                $0.ipAddresses = example.addresses
            })
        #expect(try fits(leaf, example.asked) == example.fits)
    }

    /// The caller knows the public suffixes; here the wildcard just matches nothing.
    @Test func aWildcardThatIsRefusedMatchesNothing() throws {
        let root = try Self.root.get()
        let rule = WildcardRule.refused(publicSuffix: "co.test")
        let wildcard = try root.issue(.leaf("*.CO.test"))
        #expect(try fits(wildcard, .dns("example.co.test")))
        #expect(try !fits(wildcard, .dns("example.co.test"), rule))
        #expect(
            try message(wildcard, .dns("example.co.test"), rule)
                == "certificate is not for example.co.test: its wildcard *.CO.test covers the whole of a public "
                + "suffix, under which anybody can have a name, and matches nothing")
        // The exact name beside it still counts.
        #expect(try fits(root.issue(.leaf("*.co.test", "example.co.test")), .dns("example.co.test"), rule))
        // And without the wildcard the message is the usual one.
        #expect(
            try message(root.issue(.leaf("other.test")), .dns("example.co.test"), rule)
                == "certificate is not for example.co.test; it is for other.test")
    }

    @Test(arguments: [ServerName.dns("api.test"), .ip("192.0.2.1")])
    func theCommonNameStandsForNothing(_ asked: ServerName) throws {
        let root = try Self.root.get()
        let bare = try root.issue(
            .leaf("api.test").with {
                $0.commonName = asked.description
                $0.dnsNames = []
            })
        #expect(try !fits(bare, asked))
        let other = try root.issue(.leaf("other.test").with { $0.commonName = asked.description })
        #expect(try !fits(other, asked))
    }

    @Test func noNameAskedFor() throws {
        #expect(try fits(Self.root.get().issue(.leaf("api.test")), nil))
    }

    @Test func messages() throws {
        let root = try Self.root.get()
        #expect(
            try message(root.issue(.leaf("a.test", ipAddresses: ["192.0.2.1"])), .dns("b.test"))
                == "certificate is not for b.test; it is for a.test, 192.0.2.1")
        let bare = try root.issue(.leaf("a.test").with { $0.dnsNames = [] })
        #expect(
            try message(bare, .dns("a.test"))
                == "certificate is not for a.test: it has no subjectAltName with a host in it (CN=a.test)")
        let many = try root.issue(.leaf("x.test").with { $0.dnsNames = (0..<20).map { "\($0).test" } })
        #expect(try message(many, .dns("b.test"))?.hasSuffix("7.test and 12 more") == true)
    }

    private func fits(_ leaf: HeldCertificate, _ name: ServerName?, _ rule: WildcardRule = .oneLabel) throws -> Bool {
        // The check of the name alone must agree with verification.
        let alone = try name.map { try Certificate(der: leaf.der).mismatch(with: $0, wildcards: rule) } ?? nil
        switch try verify(leaf, name, rule) {
        case .success:
            #expect(alone == nil)
            return true
        case .failure(let failure):
            #expect(failure.reason == .nameMismatch)
            #expect(alone?.message == failure.message)
            return false
        }
    }

    private func message(
        _ leaf: HeldCertificate, _ name: ServerName, _ rule: WildcardRule = .oneLabel
    ) throws -> String? {
        if case .failure(let failure) = try verify(leaf, name, rule) { failure.message } else { nil }
    }

    private func verify(
        _ leaf: HeldCertificate, _ name: ServerName?, _ rule: WildcardRule
    ) throws -> Result<VerifiedChain, VerificationFailure> {
        TrustAnchors([try Certificate(der: try Self.root.get().der)]).verify(
            PresentedChain(leaf: try Certificate(der: leaf.der)),
            options: VerificationOptions(name: name, time: CertificateTemplate.now, wildcards: rule))
    }
}
