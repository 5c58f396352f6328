import Testing

@testable import PinproxySecurity

@Suite struct HostPatternTests {
    @Test(arguments: [
        ("API.Example.com.", "api.example.com"),
        ("*.Example.com", "*.example.com"),
        ("**.example.com.", "**.example.com"),
        ("**.test", "**.test"),
        ("localhost:8080", "localhost:8080"),
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:443", "192.0.2.7:443"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:8443", "[2001:db8::1]:8443"),
        ("_dmarc.xn--bcher-kva.test", "_dmarc.xn--bcher-kva.test"),
        ("1password.com", "1password.com"),
        ("bücher.test", "xn--bcher-kva.test"),
        ("*.BÜCHER.test:8443", "*.xn--bcher-kva.test:8443"),
        ("**.日本語。test。", "**.xn--wgv71a119e.test"),
    ])
    func canonicalForm(_ text: String, _ canonical: String) throws {
        let pattern = try HostPattern(text)
        #expect(pattern.description == canonical)
        #expect(try HostPattern(pattern.description) == pattern)
    }

    @Test(arguments: [
        ("", HostPatternError.Reason.empty), (".", .empty), (":443", .empty),
        ("*", .everything), ("**", .everything), ("*.", .everything), ("**.", .everything),
        ("https://example.com", .isURL), ("https://example.com:80", .isURL), ("example.com/x", .isURL),
        ("example.com:", .port), ("example.com:0", .port), ("example.com:65536", .port),
        ("example.com:https", .port), ("example.com:+1", .port),
        ("192.0.2", .notAnAddress), ("192.0.2.256", .notAnAddress), ("192.0.2.07", .notAnAddress),
        ("*.192.0.2.1", .notAnAddress), ("[192.0.2.1]", .notAnAddress), ("[::1%lo]", .notAnAddress),
        ("1::2::3", .notAnAddress), ("fe80:", .port), ("[::1", .notAName), ("[::1]x", .notAName),
        ("exam ple.com", .notAName), ("user@example.com", .notAName), ("exa\0mple.com", .notAName),
        ("a.*.ü.test", .wildcardPlace), ("ü。。test", .emptyLabel),
        ("*。ü.test", .wildcardPlace), ("ü.test／x", .isURL), ("１９２.０.２.１", .notAnAddress), ("ü．test：80", .notAName),
        ("a..b", .emptyLabel), (".a.b", .emptyLabel), ("a.b..", .emptyLabel),
        ("-a.b", .hyphen), ("a-.b", .hyphen),
        ("a*.example.com", .wildcardPlace), ("api.*.com", .wildcardPlace),
        ("*.*.example.com", .wildcardPlace), ("***.example.com", .wildcardPlace),
        (String(repeating: "a", count: 64) + ".test", .labelTooLong),
        (Array(repeating: "abc", count: 64).joined(separator: "."), .tooLong),
    ])
    func refusal(_ text: String, _ reason: HostPatternError.Reason) {
        let error = #expect(throws: HostPatternError.self) { try HostPattern(text) }
        #expect(error?.reason == reason)
        #expect(error?.description.isEmpty == false)
    }

    @Test(arguments: [
        ("**.bücher.test:8443", "**.xn--bcher-kva.test:8443 (**.bücher.test:8443)"), ("*.a.test", "*.a.test"),
        ("[2001:db8::1]:443", "[2001:db8::1]:443"), ("xn--tda:443", "xn--tda:443 (ü:443)"),
    ])
    func peopleAreShownBothForms(_ text: String, _ expected: String) throws {
        #expect(try HostPattern(text).inBothForms == expected)
    }

    @Test func refusalOfAnInternationalNameNamesPatternLabelAndReason() {
        let error = #expect(throws: HostPatternError.self) { try HostPattern("*.a.xn--a.test:443") }
        #expect(
            error?.description.hasPrefix(
                "“*.a.xn--a.test:443” can't be a host name: the label “xn--a” is not a valid international name: ")
                == true)
    }

    @Test(arguments: [
        ("example.com", [true, false, false, false]),
        ("*.example.com", [false, true, false, false]),
        ("**.example.com", [true, true, true, false]),
    ])
    func tableOfTheDocumentation(_ text: String, _ expected: [Bool]) throws {
        let pattern = try HostPattern(text)
        let table = HostTable([(pattern, 0)])
        let hosts = ["example.com", "api.example.com", "eu.api.example.com", "badexample.com"]
        for (host, expected) in zip(hosts, expected) {
            #expect(pattern.matches(host: host, port: 443) == expected, "\(host)")
            #expect((table.entry(forHost: host, port: 443) != nil) == expected, "\(host)")
        }
    }
}
