import Testing

@testable import Security

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

    @Test(arguments: ["github.io", "*.example.com", "**.example.co.uk", "**.test", "*.www.ck", "192.0.2.1", "::1"])
    func othersAreNot(_ text: String) throws {
        #expect(try HostPattern(text).publicSuffixWarning() == nil)
    }
}
