import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

@Suite struct PublicSuffixTests {
    @Test(arguments: [
        ("com", true), ("co.uk", true), ("github.io", true), ("ck", true), ("any.ck", true),
        ("xn--p1ai", true), ("xn--55qx5d.cn", true),
        ("example.com", false), ("www.ck", false), ("city.kawasaki.jp", false), ("example.github.io", false),
        ("test", false), ("internal", false), ("localhost", false), ("", false),
    ])
    func theList(_ name: String, _ expected: Bool) {
        #expect(PublicSuffixes.system.contains(name) == expected)
    }

    @Test(arguments: [
        ("*.co.uk", "*.example.co.uk"), ("**.com", "**.example.com"), ("**.github.io:8443", "**.example.github.io"),
        ("*.公司.CN", "*.example.xn--55qx5d.cn"),
    ])
    func aWildcardOverStrangersIsWarnedOf(_ text: String, _ advice: String) throws {
        let pattern = try HostPattern(text)
        let warning = try #require(pattern.publicSuffixWarning())
        #expect(warning.hasPrefix("“\(pattern.inBothForms)” matches "))
        #expect(warning.hasSuffix("as in \(advice)"))
    }

    /// Wildcards in certificates: a registry's names belong to different owners, while a company may certify its
    /// customers' names. Browsers agree.
    @Test(arguments: [
        ("*.co.uk", "example.co.uk", false), ("*.CO.UK", "example.co.uk", false), ("*.com", "example.com", false),
        ("*.com.br", "example.com.br", false), ("*.any.ck", "example.any.ck", false), ("*.ck", "www.ck", false),
        ("*.xn--55qx5d.cn", "example.xn--55qx5d.cn", false), ("*.uk", "co.uk", false),
        ("*.example.co.uk", "www.example.co.uk", true), ("*.github.io", "pinproxy.github.io", true),
        ("*.s3.amazonaws.com", "bucket.s3.amazonaws.com", true), ("*.city.kawasaki.jp", "www.city.kawasaki.jp", true),
        ("example.co.uk", "example.co.uk", true), ("*.api.test", "v1.api.test", true),
    ])
    func aCertificatesWildcardReachesNoRegistrysNames(_ written: String, _ host: String, _ isAccepted: Bool) throws {
        let root = try HeldCertificate.root()
        let leaf = try root.issue(.leaf(written))
        let pins = PinSet([try leaf.keyPin()])
        for policy in [
            SecurityPolicy(), SecurityPolicy(mode: .publicKey, pins: pins),
            SecurityPolicy(mode: .publicKey, pins: pins, allowsInvalidCertificates: true),
            SecurityPolicy(
                mode: .certificate, pins: PinSet([try leaf.certificatePin()]), allowsInvalidCertificates: true),
        ] {
            let explanation = policy.explain(
                try leaf.presented(), host: .dns(host), anchors: TrustAnchors([try root.parsed]), at: Chains.now)
            #expect(explanation.verdict.isAccepted == isAccepted, "\(policy.mode)")
            let name = explanation.checks.first { $0.name == .name }
            #expect(name?.outcome == (isAccepted ? .passed : .failed))
            if !isAccepted, host != "co.uk", written != "*.com", written != "*.ck" {
                let text = "covers the whole of a public suffix"
                #expect(name?.lines.last?.contains(text) == true)
                #expect(explanation.verdict.refusal?.details.contains(text) == true)
                #expect(
                    explanation.verdict.refusal?.title
                        == "Certificate verification failure for \(host): wrong host name"
                        || policy.mode == .certificate)
            }
        }
        // Unless the name isn't checked.
        let any = SecurityPolicy(validatesDomainName: false)
        #expect(
            any.evaluate(
                try leaf.presented(), host: .dns(host), anchors: TrustAnchors([try root.parsed]), at: Chains.now
            ).isAccepted)
    }

    @Test(arguments: ["github.io", "*.example.com", "**.example.co.uk", "**.test", "*.www.ck", "192.0.2.1", "::1"])
    func othersAreNot(_ text: String) throws {
        #expect(try HostPattern(text).publicSuffixWarning() == nil)
    }
}
