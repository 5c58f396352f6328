import Testing

@testable import PinproxySecurity

@Suite struct InternationalNameTests {
    @Test(arguments: [
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.Example", "xn--bcher-kva.example"),
        ("bu\u{308}cher.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("faß.example", "xn--fa-hia.example"),
        ("日本語。example．", "xn--wgv71a119e.example."),
        ("ｅｘａｍｐｌｅ.ü", "example.xn--tda"),
        ("аpple.example", "xn--pple-43d.example"),
        ("_dmarc.r3---sn.bücher.example", "_dmarc.r3---sn.xn--bcher-kva.example"),
        ("क्\u{200D}ष.example", "xn--11b2ezcw70k.example"),
        // Names with symbols exist, and browsers accept them.
        ("xn--ls8h.example", "xn--ls8h.example"),
        // Not converted here.
        ("r3---sn.Example.", "r3---sn.example."), ("2001:DB8::1", "2001:db8::1"), ("axn--b.test", "axn--b.test"),
        ("", ""), (".", "."), ("a b/*", "a b/*"),
    ])
    func aLabels(_ name: String, _ expected: String) throws {
        #expect(try InternationalName.toASCII(name) == expected)
        #expect(try InternationalName.toASCII(expected) == expected)
    }

    @Test(arguments: [
        ("a.xn--a.test", "xn--a"), ("xn--.test", "xn--"), ("XN--zzzzzzzz99999.test", "XN--zzzzzzzz99999"),
        ("xn--abc-.test", "xn--abc-"), ("xn--bücher.test", "xn--bücher"), ("xn--u-ccb.test", "xn--u-ccb"),
        ("ü.💩.test", "💩"), ("-ü.test", "-ü"), ("ü-.test", "ü-"), ("ab--ü.test", "ab--ü"),
        ("א1a.test", "א1a"), ("a\u{200D}b.test", "a\u{200D}b"), ("a\u{2024}b.test", "a\u{2024}b"),
        ("\u{AD}.test", "\u{AD}"), ("ü\0.test", "ü\0"), ("ü b.test", "ü b"),
        (String(repeating: "ü", count: 63) + ".test", String(repeating: "ü", count: 63)),
    ])
    func refusalNamesTheLabel(_ name: String, _ label: String) {
        let error = #expect(throws: InternationalNameError.self) { try InternationalName.toASCII(name) }
        #expect(error?.label == label)
        #expect(error?.reason.isEmpty == false)
    }

    /// The cost of conversion grows faster than the name.
    @Test func aNameThatIsTooLongIsNotConverted() {
        let name = String(repeating: "ü.", count: 400)
        let error = #expect(throws: InternationalNameError.self) { try InternationalName.toASCII(name) }
        #expect(error?.reason == "it is longer than any host name")
    }

    @Test(arguments: [
        ("www.xn--bcher-kva.example", "www.bücher.example"), ("a.test", "a.test"), ("xn--.test", "xn--.test"), ("", ""),
    ])
    func forShowing(_ name: String, _ expected: String) {
        #expect(InternationalName.toUnicode(name) == expected)
    }
}
