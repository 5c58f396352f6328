import PinproxyHTTPWire
import Testing

@Suite struct AuthorityTests {
    @Test(arguments: [
        ("example.test:443", "example.test:443", Authority.Kind.name), ("EXAMPLE.Test:443", "example.test:443", .name),
        ("example.test.:443", "example.test:443", .name), ("a_b.-x-.test:1", "a_b.-x-.test:1", .name),
        ("localhost:65535", "localhost:65535", .name), ("xn--bcher-kva.test:80", "xn--bcher-kva.test:80", .name),
        ("1.example.test:80", "1.example.test:80", .name), ("0xcafe.test:80", "0xcafe.test:80", .name),
        ("192.0.2.1:443", "192.0.2.1:443", .ipv4), ("192.0.2.1.:443", "192.0.2.1:443", .ipv4),
        ("[::1]:443", "[::1]:443", .ipv6), ("[2001:DB8:0:0:0:0:0:1]:443", "[2001:db8::1]:443", .ipv6),
        ("[2001:db8:0:1:1:1:1:1]:80", "[2001:db8:0:1:1:1:1:1]:80", .ipv6), ("[::]:80", "[::]:80", .ipv6),
        ("[1:0:0:2:0:0:0:3]:80", "[1:0:0:2::3]:80", .ipv6), ("[1:0:0:2:3:0:0:4]:80", "[1::2:3:0:0:4]:80", .ipv6),
        ("[1::]:80", "[1::]:80", .ipv6), ("[::ffff:192.0.2.1]:80", "[::ffff:192.0.2.1]:80", .ipv6),
        ("[::FFFF:c000:201]:80", "[::ffff:192.0.2.1]:80", .ipv6),
        ("[64:ff9b::192.0.2.1]:80", "[64:ff9b::c000:201]:80", .ipv6),
        ("[fe80::1:2:3:4]:80", "[fe80::1:2:3:4]:80", .ipv6),
    ])
    func hostsHaveOneForm(_ text: String, _ canonical: String, _ kind: Authority.Kind) throws {
        let authority = try Authority.parse(text, defaultPort: nil).get()
        #expect(authority.description == canonical)
        #expect(authority.kind == kind)
        #expect(authority.isIPAddress == (kind != .name))
        #expect(try Authority.parse(authority.description, defaultPort: nil).get() == authority)
    }

    @Test func portsMayBeLeftOutWhereThereIsADefault() throws {
        for text in ["a.test", "a.test:", "a.test:443", "A.TEST.", "A.TEST.:"] {
            #expect(try Authority.parse(text, defaultPort: 443).get().description == "a.test:443")
        }
        #expect(try Authority.parse("[::1]", defaultPort: 80).get().description == "[::1]:80")
        #expect(try Authority.parse("[::1]:", defaultPort: 80).get().description == "[::1]:80")
    }

    @Test(arguments: [
        ("", AuthorityError.empty), (":443", .empty), (".:443", .emptyLabel), ("a..b:443", .emptyLabel),
        (".a:443", .emptyLabel), ("a..:443", .emptyLabel), ("a", .missingPort), ("a:", .missingPort),
        ("[::1]", .missingPort),
        ("a:0", .invalidPort), ("a:65536", .invalidPort), ("a:99999", .invalidPort), ("a:000443", .invalidPort),
        ("a:0443", .invalidPort),
        ("a:+80", .invalidPort), ("a:-1", .invalidPort), ("a:8o", .invalidPort), ("a:443/", .invalidPort),
        ("a:18446744073709551617", .invalidPort), ("user@a:443", .userInformation), ("user:pw@a:443", .userInformation),
        ("a%2etest:443", .percentEncoding), ("[fe80::1%25eth0]:443", .percentEncoding),
        ("b\u{FC}cher.test:443", .notASCII),
        ("a b:443", .controlCharacter), ("a\u{0}:443", .controlCharacter), ("a\r\n:443", .controlCharacter),
        ("a\t:443", .controlCharacter), ("a\u{7F}:443", .controlCharacter), ("a\\b:443", .invalidCharacter),
        ("a/b:443", .invalidCharacter), ("a*b:443", .invalidCharacter), ("a,b:443", .invalidCharacter),
        ("a]:443", .invalidCharacter),
        ("127.1:443", .numericHost), ("2130706433:443", .numericHost), ("0x7f000001:443", .numericHost),
        ("0x7f.1:443", .numericHost), ("0177.0.0.1:443", .numericHost), ("1.2.3.256:443", .numericHost),
        ("1.2.3.4.5:443", .numericHost), ("a.0x:443", .numericHost), ("01.2.3.4:443", .numericHost),
        ("a.9.:443", .numericHost),
        ("[::1:443", .invalidIPv6), ("[::1]x:443", .invalidIPv6), ("[]:443", .empty), ("[a]:443", .invalidIPv6),
        ("[1.2.3.4]:443", .invalidIPv6), ("[::1::2]:443", .invalidIPv6), ("[1:2:3:4:5:6:7]:443", .invalidIPv6),
        ("[1:2:3:4:5:6:7:8:9]:443", .invalidIPv6), ("[1::2:3:4:5:6:7:8]:443", .invalidIPv6),
        ("[:1:2:3:4:5:6:7:8]:443", .invalidIPv6),
        ("[1:2:3:4:5:6:7:8:]:443", .invalidIPv6), ("[12345::]:443", .invalidIPv6), ("[::g]:443", .invalidIPv6),
        ("[:::1]:443", .invalidIPv6), ("[::1.2.3]:443", .invalidIPv6), ("[::1.2.3.4:5]:443", .invalidIPv6),
        ("[:]:443", .invalidIPv6),
        // It is ambiguous where the port begins.
        ("::1:443", .unbracketedIPv6(meant: "[::1]:443")),
        ("2001:DB8::1:443", .unbracketedIPv6(meant: "[2001:db8::1]:443")),
        ("1:2:3:4:5:6:7:8:443", .unbracketedIPv6(meant: "[1:2:3:4:5:6:7:8]:443")),
        ("1:2:3:4:5:6:7:8", .unbracketedIPv6(meant: "[1:2:3:4:5:6:7:8]")),
        ("fe80::1:99999", .unbracketedIPv6(meant: nil)),
        ("::1", .unbracketedIPv6(meant: "[::1]")), ("fe80::abcd", .unbracketedIPv6(meant: "[fe80::abcd]")),
        ("a:b:443", .unbracketedIPv6(meant: nil)),
    ])
    func whatIsAmbiguousIsRefused(_ text: String, _ error: AuthorityError) {
        #expect(Authority.parse(text, defaultPort: nil) == .failure(error))
    }

    @Test func lengthsAreBounded() {
        let label = String(repeating: "a", count: 63)
        let longest = [label, label, label, String(repeating: "b", count: 61)].joined(separator: ".")
        #expect((try? Authority.parse("\(longest):1", defaultPort: nil).get())?.host.utf8.count == 253)
        #expect((try? Authority.parse("\(longest).:1", defaultPort: nil).get())?.host.utf8.count == 253)
        #expect(Authority.parse("\(longest)b:1", defaultPort: nil) == .failure(.hostTooLong))
        #expect(Authority.parse("\(label)a.test:1", defaultPort: nil) == .failure(.labelTooLong))
        #expect(Authority.parse(String(repeating: "a", count: 300) + ":1", defaultPort: nil) == .failure(.hostTooLong))
    }

    @Test func anAddressWithoutBracketsIsToldWhatToWrite() throws {
        for port in [nil, 443] as [UInt16?] {
            guard case .failure(let error) = Authority.parse("::1:443", defaultPort: port) else {
                Issue.record("accepted")
                return
            }
            #expect(error.description == "an IPv6 address needs brackets: write [::1]:443")
        }
    }

    @Test(arguments: [
        ("a.test:443", "a.test", true), ("a.test:443", "A.Test.", true), ("a.test:443", "a.test:443", true),
        ("a.test:443", "a.test:", true), ("a.test:443", "a.test.:443", true), ("a.test:443", "a.test:8443", false),
        ("a.test:443", "a.test:0443", false), ("a.test:443", "b.test", false), ("a.test:443", "a.tes", false),
        ("a.test:443", "a.testx", false), ("a.test:443", "a.test..", false), ("a.test:443", "", false),
        ("a.test:443", "a.test:x", false), ("a.test:443", "a.test:4430", false), ("a.test:443", "x.a.test", false),
        ("a.test:8443", "a.test", false), ("a.test:8443", "a.test:8443", true), ("a.test:8443", "a.test:443", false),
        ("[::1]:443", "[::1]", true), ("[::1]:443", "[0:0:0:0:0:0:0:1]:443", true), ("[::1]:443", "[::1]:8443", false),
        ("[::1]:443", "::1", false), ("[::1]:443", "[::2]", false), ("[::1]:443", "[::11]", false),
        ("[::1]:443", "[::1", false),
        ("[2001:db8::a]:443", "[2001:DB8::A]", true), ("192.0.2.1:443", "192.0.2.1", true),
        ("192.0.2.1:443", "192.0.2.11", false),
    ])
    func hostFieldsAreCompared(_ authority: String, _ field: String, _ agree: Bool) throws {
        let authority = try Authority.parse(authority, defaultPort: nil).get()
        #expect(authority.matches(Array(field.utf8).span, defaultPort: 443) == agree)
    }

    @Test func aNameIsTheHostAlone() throws {
        let authority = try Authority.parse("origin.test:8443", defaultPort: nil).get()
        for name in ["origin.test", "ORIGIN.Test", "origin.test."] { #expect(authority.isNamed(name)) }
        for name in ["origin.test:8443", "origin.test:443", "origin.test..", "other.test", "", "."] {
            #expect(!authority.isNamed(name))
        }
    }

    /// Some clients put the port into SNI.
    @Test(arguments: [
        (
            "origin.test:8443", ["origin.test", "origin.test:8443", "Origin.test:8443"],
            ["origin.test:443", "other.test:8443", "origin.test:", "a@origin.test:8443"]
        ),
        ("127.0.0.1:443", ["127.0.0.1", "127.0.0.1:443"], ["127.0.0.1:444", "127.0.0.2:443"]),
        ("[::1]:443", ["::1", "[::1]", "[::1]:443"], ["[::1]:444", "::1:443"]),
    ])
    func aNameMayHaveThePort(_ authority: String, _ good: [String], _ bad: [String]) throws {
        let authority = try Authority.parse(authority, defaultPort: nil).get()
        for name in good { #expect(authority.isNamedWithPort(name), "\(name)") }
        for name in bad { #expect(!authority.isNamedWithPort(name), "\(name)") }
    }

    @Test(arguments: [
        (
            "127.0.0.1:443", ["127.0.0.1"],
            ["127.0.0.2", "127.0.0.1:443", "127.1", "127.0.0.1.test", "[127.0.0.1]", "::1"]
        ),
        (
            "[2001:db8::1]:443", ["2001:db8::1", "2001:DB8:0:0::1", "[2001:db8::1]"],
            ["2001:db8::2", "[2001:db8::1]:443", "2001:db8::1%eth0", "127.0.0.1", "a.test", ""]
        ),
    ])
    func anAddressIsNamedByItsOwnSpellings(_ authority: String, _ good: [String], _ bad: [String]) throws {
        let authority = try Authority.parse(authority, defaultPort: nil).get()
        for name in good { #expect(authority.isNamed(name), "\(name)") }
        for name in bad { #expect(!authority.isNamed(name), "\(name)") }
    }
}
