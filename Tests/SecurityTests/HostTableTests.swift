import PinproxyAddresses
import Testing

@testable import PinproxySecurity

@Suite struct HostTableTests {
    private func table(_ patterns: [String]) throws -> HostTable<String> {
        HostTable(try patterns.map { (try HostPattern($0), $0) })
    }

    @Test(
        arguments: [
            ("api.example.com", "api.example.com"),
            ("API.EXAMPLE.COM.", "api.example.com"),
            ("www.example.com", "*.example.com"),
            ("example.com", "**.example.com"),
            ("eu.www.example.com", "**.example.com"),
            ("x.eu.example.com", "*.eu.example.com"),
            ("y.x.eu.example.com", "**.eu.example.com"),
            ("eu.example.com", "*.example.com"),
            ("other.test", "**.test"),
            ("example.org", nil), ("com", nil), ("", nil), (".", nil),
            ("192.0.2.1", "192.0.2.1"), ("192.0.2.2", nil), ("2001:db8:0::1", "2001:db8::1"), ("1.2.3", nil),
        ] as [(String, String?)])
    func theMostSpecificWins(_ host: String, _ expected: String?) throws {
        let patterns = [
            "**.test", "**.example.com", "*.example.com", "api.example.com", "**.eu.example.com",
            "*.eu.example.com", "192.0.2.1", "2001:db8::1",
        ]
        for patterns in [patterns, patterns.reversed()] {
            #expect(try table(patterns).entry(forHost: host, port: 443)?.value == expected)
        }
    }

    @Test(
        arguments: [
            ("API.example.com.", 8443, "api.example.com"),
            ("www.example.com", 8443, "*.example.com"),
            ("eu.example.com", 443, "*.example.com"),
            ("a.eu.example.com", 8443, "**.eu.example.com"),
            ("a.us.example.com", 8443, "**.example.com:8443"),
            ("example.com", 443, "**.example.com"),
            ("example.org", 443, nil),
        ] as [(String, UInt16, String?)])
    func precedenceAsDocumented(_ host: String, _ port: UInt16, _ expected: String?) throws {
        let patterns = [
            "**.example.com", "**.example.com:8443", "**.eu.example.com", "*.example.com", "api.example.com",
        ]
        for patterns in [patterns, patterns.reversed()] {
            #expect(try table(patterns).entry(forHost: host, port: port)?.value == expected)
        }
    }

    @Test func aPortBeatsNoPortOfTheSameSpecificityOnly() throws {
        let table = try table([
            "api.test", "api.test:8443", "*.test:8443", "*.test", "**.test:1", "**.b.test", "[::1]:5",
        ])
        #expect(table.entry(forHost: "api.test", port: 443)?.value == "api.test")
        #expect(table.entry(forHost: "api.test", port: 8443)?.value == "api.test:8443")
        #expect(table.entry(forHost: "www.test", port: 8443)?.value == "*.test:8443")
        #expect(table.entry(forHost: "www.test", port: 443)?.value == "*.test")
        #expect(table.entry(forHost: "a.b.test", port: 1)?.value == "**.b.test")
        #expect(table.entry(forHost: "a.c.test", port: 1)?.value == "**.test:1")
        #expect(table.entry(forHost: "a.c.test", port: 2) == nil)
        #expect(table.entry(forHost: "::1", port: 5)?.value == "[::1]:5")
        #expect(table.entry(forHost: "::1", port: 6) == nil)
    }

    @Test func anAddressHasOneSpelling() throws {
        let table = try table(["2001:DB8:0::1", "192.0.2.7", "[::ffff:192.0.2.8]:443"])
        #expect(table.entry(forHost: "2001:db8:0:0::1", port: 443) != nil)
        #expect(table.entry(forHost: "192.0.2.7", port: 443) != nil)
        #expect(table.entry(forHost: "::ffff:192.0.2.7", port: 443)?.pattern.name == "192.0.2.7")
        #expect(table.entry(forHost: "::ffff:c000:208", port: 443) != nil)
        #expect(table.entry(forHost: "192.0.2.8", port: 443)?.value == "[::ffff:192.0.2.8]:443")
        #expect(table.entry(forHost: "192.0.2.9", port: 443) == nil)
    }

    @Test func aNameIsFoundWhateverItsLengthAndCase() throws {
        for length in 1...40 {
            let text = String(repeatElement("abcdefghijklmnopqrstuvwxyz_0123456789", count: 2).joined().prefix(length))
            let table = try table([text + ".test", "b." + text + ".test"])
            #expect(table.entry(forHost: text.uppercased() + ".TEST", port: 443)?.value == text + ".test")
            #expect(table.entry(forHost: "B." + text.uppercased() + ".test", port: 443)?.value == "b." + text + ".test")
        }
    }

    /// Every byte of a host against every byte of a name, at each position, which a table's hash would mostly hide. A
    /// carriage return is no hyphen, though they differ like the cases of a letter.
    @Test func aNameIsComparedToItsLastByte() {
        for (length, place) in [(1, 0), (7, 3), (8, 0), (8, 7), (9, 8), (17, 5), (17, 16)] {
            var (name, host) = (
                Array("abcdefgh-jklmnopq".utf8.prefix(length)), Array("aBcDEfgH-JklmNoPq".utf8.prefix(length))
            )
            for ours in UInt8.min...UInt8.max where !(0x41...0x5A).contains(ours) {
                for theirs in UInt8.min...UInt8.max {
                    (name[place], host[place]) = (ours, theirs)
                    let isSame = ours == ((0x41...0x5A).contains(theirs) ? theirs + 0x20 : theirs)
                    if name.span.spells(host.span) != isSame {
                        Issue.record("\(ours) beside \(theirs) at \(place) of \(length)")
                    }
                }
            }
            let shorter = Array(host.dropLast())
            let isPrefix = name.span.spells(shorter.span)
            #expect(!isPrefix)
        }
    }

    @Test func duplicatesAreReportedAndTheFirstHolds() throws {
        let texts = ["a.test", "b.test", "A.test.", "*.a.test", "b.test.", "a.test:1", "a.test"]
        let numbering = HostPatterns.number(try texts.map { try HostPattern($0) })
        #expect(numbering.duplicates.map(\.later) == [2, 4, 6])
        #expect(numbering.duplicates.map(\.first) == [0, 1, 0])
        #expect(
            numbering.numbers.map { numbering.patterns.pattern($0).description }
                == ["a.test", "b.test", "a.test", "*.a.test", "b.test", "a.test:1", "a.test"])
        let table = numbering.table(of: texts)
        #expect(table.entries.map(\.value) == ["a.test", "b.test", "*.a.test", "a.test:1"])
        #expect(table.entry(forHost: "a.test", port: 443)?.value == "a.test")
    }

    /// The table must agree with the patterns tried one by one, on thousands of names and addresses that collide a lot,
    /// written in every form of a host.
    @Test func agreesWithAScanOfAllPatterns() throws {
        var random = SplitMix(state: 7)
        func name(_ random: inout SplitMix) -> String {
            if Int.random(in: 0..<10, using: &random) == 0 {
                return ["192.0.2.1", "192.0.2.2", "2001:db8::1", "::1"].randomElement(using: &random) ?? "::1"
            }
            return (0..<Int.random(in: 1...4, using: &random)).map { _ in
                ["a", "b", "aa", "abcdefgh", "bücher", "xn--bcher-kva"].randomElement(using: &random) ?? "a"
            }.joined(separator: ".")
        }
        for _ in 0..<40 {
            var patterns: [HostPattern] = []
            for _ in 0..<100 {
                let name = name(&random)
                let isAddress = IPAddress(name) != nil
                let prefix = isAddress ? "" : ["", "*.", "**."].randomElement(using: &random) ?? ""
                let port = ["", ":1", ":2"].randomElement(using: &random) ?? ""
                let host = name.contains(":") ? "[\(name)]" : name
                patterns.append(try HostPattern(prefix + host + port))
            }
            let table = HostTable(patterns.map { ($0, 0) })
            for _ in 0..<100 {
                var host = try InternationalName.toASCII(name(&random))
                if Bool.random(using: &random) { host = host.uppercased() }
                if IPAddress(host) == nil, Bool.random(using: &random) { host += "." }
                let port = UInt16.random(in: 1...3, using: &random)
                let matching = patterns.filter { $0.matches(host: host, port: port) }
                let best = matching.reduce(matching.first) { best, next in
                    best.map { next.isMoreSpecific(than: $0) ? next : $0 }
                }
                #expect(table.entry(forHost: host, port: port)?.pattern == best, "\(host):\(port)")
                #expect((table.value(forHost: host, port: port) != nil) == (best != nil), "\(host):\(port)")
            }
        }
    }

    /// Names of all lengths with the same ending, so that only their first bytes differ, and hosts longer than any
    /// name.
    @Test func everyByteOfANameCounts() throws {
        let longest = Array(repeating: String(repeating: "a", count: 49), count: 5).joined(separator: ".") + ".bc"
        let names = (1...longest.utf8.count).map { String(longest.suffix($0)) }.filter { $0.first != "." }
        let table = try table(names)
        for name in names {
            #expect(table.entry(forHost: name, port: 443)?.value == name)
            #expect(table.entry(forHost: "x" + name.dropFirst(), port: 443) == nil)
        }
        for length in [254, 255, 256, 257, 512] {
            #expect(table.entry(forHost: String(repeating: "a", count: length), port: 443) == nil)
        }
    }

    @Test func anEmptyTableSpeaksForNobody() {
        #expect(HostTable<Int>().entry(forHost: "a.test", port: 443) == nil)
    }

    @Test func manyEntries() throws {
        let table = HostTable(try (0..<100_000).map { (try HostPattern("h\($0).example.test"), $0) })
        for number in stride(from: 0, to: 100_000, by: 97) {
            #expect(table.entry(forHost: "H\(number).example.test", port: 1)?.value == number)
        }
        #expect(table.entry(forHost: "h100000.example.test", port: 1) == nil)
    }

    /// An entry would be worthless if a client could avoid it by spelling the address differently.
    @Test(arguments: [
        ("127.0.0.1", ["::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:FFFF:127.0.0.1", "0.0.0.0", "::ffff:0.0.0.0"]),
        ("0.0.0.0", ["127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"]),
        ("::ffff:192.0.2.7", ["192.0.2.7", "::ffff:c000:207"]),
        ("::1", ["::", "0::0", "0:0:0:0:0:0:0:1", "::0.0.0.1", "::0.0.0.0"]),
        ("192.0.2.7", ["64:ff9b::192.0.2.7", "64:FF9B::c000:207", "::ffff:0:192.0.2.7", "::192.0.2.7"]),
    ])
    func whatLeadsToTheSamePlaceIsTheSame(entry: String, hosts: [String]) throws {
        let table = try self.table([entry])
        let pattern = try HostPattern(entry)
        for host in hosts {
            #expect(table.entry(forHost: host, port: 443) != nil, "\(host)")
            #expect(pattern.matches(host: host, port: 443), "\(host)")
        }
    }

    @Test func anAddressThatStandsForAnotherMayHaveItsOwnEntry() throws {
        let table = try self.table(["192.0.2.7", "64:ff9b::c000:207"])
        #expect(table.entry(forHost: "64:ff9b::192.0.2.7", port: 443)?.pattern.name == "64:ff9b::c000:207")
        #expect(table.entry(forHost: "::ffff:0:192.0.2.7", port: 443)?.pattern.name == "192.0.2.7")
        // A site behind 6to4, a client of Teredo and the local prefix of NAT64 are other hosts, or may be.
        for host in [
            "2002:c000:207::1", "2001:0:4136:e378:8000:63bf:3fff:fdf8", "64:ff9b:1::192.0.2.7", "::ffff:1:c000:207",
        ] {
            #expect(table.entry(forHost: host, port: 443) == nil, "\(host)")
        }
    }

    @Test func twoSpellingsOfOneAddressAreOneEntry() throws {
        let texts = ["127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"]
        #expect(HostPatterns.number(try texts.map { try HostPattern($0) }).duplicates.map(\.later) == [1, 2])
    }
}

/// A generator with a fixed seed, so that a failure can be reproduced.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }
}
