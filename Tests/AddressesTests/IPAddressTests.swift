import Testing

@testable import PinproxyAddresses

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
        ("::", "::"), ("::1", "::1"), ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
        ("2001:db8::1:0:0:1", "2001:db8::1:0:0:1"), ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
        ("::FFFF:c000:201", "::ffff:192.0.2.1"), ("fe80::0a:0", "fe80::a:0"),
        ("1::", "1::"), ("0:0:0:0:0:0:0:1", "::1"), ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:DB8::00A1", "2001:db8::a1"), ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"), ("::c000:201", "::192.0.2.1"),
    ])
    func textIsReadAndWrittenCanonically(text: String, canonical: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == canonical)
        #expect(IPAddress(address.description) == address)
        #expect(IPAddress(bytes: address.bytes) == address)
        #expect(address.bytes.count == (address.isIPv6 ? 16 : 4))
    }

    @Test(arguments: [
        "", "1.2.3", "127.1", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.4 ", " 1.2.3.4", "0x7f.0.0.1", "[::1]",
        "::1%lo",
        "fe80::1%1", ":", ":::", "1::2::3", "12345::", "::ffff:1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18",
        "localhost",
        "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1::", "g::", "1:", ":1", "1.2.3.", ".1.2.3",
        "::1.2.3",
        "1.2.3.4::", "::1.2.3.4:5", "1.2.3.999", "1..2.3", "+1.2.3.4", "1.2.3.-4", "::ffff:01.2.3.4", "\u{FF11}.2.3.4",
    ])
    func anythingElseIsNotAnAddress(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func aNULDoesntEndTheText() {
        #expect(IPAddress("1.2.3.4\0") == nil)
        #expect(IPAddress("127.0.0.1\0.example.test") == nil)
    }

    @Test func bytesAreInNetworkOrder() throws {
        #expect(try #require(IPAddress("1.2.3.4")).bytes == [1, 2, 3, 4])
        #expect(
            try #require(IPAddress("102:304:506:708:90a:b0c:d0e:f10")).bytes
                == Array(1...16))
        #expect(IPAddress(bytes: [1, 2, 3]) == nil)
    }

    @Test func theFamiliesAreNeverEqual() throws {
        let v4 = try #require(IPAddress("0.0.0.1"))
        let v6 = try #require(IPAddress("::1"))
        #expect(v4 != v6)
        #expect(!v4.isIPv6 && v6.isIPv6)
    }

    @Test(arguments: [
        ("1.2.3.4", true), ("a.4", true), ("7", true), ("a::b", true), ("a:b.c", true),
        ("a.b4", false), ("4.a", false), ("", false), ("a.", false), (".", false), ("1.", false),
        ("g:1", true), ("a:g", false), ("::1%lo", false), ("fe80::.", false), ("dead.beef", false),
    ])
    func aTextThatCanOnlyBeMeantAsAnAddressIsRecognised(text: String, expected: Bool) {
        #expect(IPAddress.isMeant(by: text.utf8.span) == expected)
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("0.0.0.0", "127.0.0.1"), ("::", "::1"),
        ("::ffff:0.0.0.0", "127.0.0.1"), ("::192.0.2.1", "::192.0.2.1"), ("1::ffff:192.0.2.1", "1::ffff:c000:201"),
    ])
    func theCanonicalAddressIsTheOneThatIsConnectedTo(text: String, canonical: String) {
        #expect(IPAddress(text)?.canonical == IPAddress(canonical))
        #expect(IPAddress(text)?.canonical.description == canonical)
    }

    @Test(
        arguments: [
            ("64:ff9b::192.0.2.1", "192.0.2.1"), ("::ffff:0:192.0.2.1", "192.0.2.1"), ("::192.0.2.1", "192.0.2.1"),
            ("::1", nil), ("::0.0.0.7", nil), ("192.0.2.1", nil), ("::ffff:192.0.2.1", nil),
            ("64:ff9b:1::192.0.2.1", nil),
        ] as [(String, String?)])
    func translatorsPrefixesLeadToAnIPv4Address(text: String, expected: String?) {
        #expect(IPAddress(text)?.translated?.description == expected)
    }
}
