import PinproxyEventLoop
import Testing

@testable import PinproxySession

@Suite struct AddressGuardTests {
    @Test(arguments: [
        ("127.0.0.1", "loopback"), ("127.255.255.255", "loopback"), ("0.0.0.0", "loopback"), ("0.1.2.3", "loopback"),
        ("::1", "loopback"), ("::", "loopback"), ("::ffff:127.0.0.1", "loopback"), ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:1::", "loopback"), ("::127.0.0.2", "loopback"),
        ("::169.254.169.254", "link-local metadata"), ("64:ff9b:1::10.1.2.3", "private"),
        ("64:ff9b:1:a9fe:a9:fe00::", "link-local metadata"),
        // The local prefix of NAT64, cut at 56 and at 64 bits; and one with zeros that aren't 0.0.0.0/8.
        ("64:ff9b:1:a:0:102:300::", "private"), ("64:ff9b:1:0:a:102:300::", "private"), ("64:ff9b:1::8.8.8.8", ""),
        // Teredo's client 10.0.0.1, inverted; and its server.
        ("2001:0:4136:e378:8000:63bf:f5ff:fffe", "private"), ("2001:0:7f00:1:8000:63bf:f7f7:f7f7", "loopback"),
        // ISATAP, with and without the bits for "universal" and "group", under any prefix.
        ("2001:db8::5efe:127.0.0.1", "loopback"), ("2001:db8::200:5efe:10.1.2.3", "private"),
        ("2001:db8::300:5efe:169.254.169.254", "link-local metadata"), ("fe80::5efe:127.0.0.1", "link-local loopback"),
        ("2002:808:808::5efe:127.0.0.1", "loopback"), ("::5efe:127.0.0.1", "loopback"),
        ("2001:db8::5efe:8.8.8.8", ""), ("2001:db8::5eff:127.0.0.1", ""), ("2001:db8::400:5efe:127.0.0.1", ""),
        ("169.254.0.1", "link-local"), ("fe80::1", "link-local"), ("febf::1", "link-local"),
        ("::ffff:169.254.1.1", "link-local"), ("2002:a9fe:101::1", "link-local"),
        ("10.0.0.1", "private"), ("172.16.0.1", "private"), ("172.31.255.255", "private"), ("192.168.1.1", "private"),
        ("::ffff:0:127.0.0.1", "loopback"), ("::ffff:0:169.254.169.254", "link-local metadata"),
        ("::ffff:0:10.1.2.3", "private"),
        ("fec0::1", "private"), ("feff:ffff::1", "private"), ("::ffff:0.0.0.0", "loopback"),
        ("fc00::1", "private"), ("fdff::1", "private"), ("::ffff:10.1.2.3", "private"), ("64:ff9b::c0a8:1", "private"),
        ("100.64.0.1", "cgnat"), ("100.127.255.255", "cgnat"), ("::ffff:100.64.0.1", "cgnat"),
        ("224.0.0.1", "multicast"), ("239.255.255.255", "multicast"), ("255.255.255.255", "multicast"),
        ("ff02::1", "multicast"),
        ("169.254.169.254", "link-local metadata"), ("::ffff:169.254.169.254", "link-local metadata"),
        ("64:ff9b::a9fe:a9fe", "link-local metadata"), ("169.254.170.2", "link-local metadata"),
        ("100.100.100.200", "cgnat metadata"), ("168.63.129.16", "metadata"), ("192.0.0.192", "metadata"),
        ("fd00:ec2::254", "metadata private"), ("fd20:ce::254", "metadata private"),
        ("192.0.2.1", ""), ("8.8.8.8", ""), ("172.15.0.1", ""), ("172.32.0.1", ""), ("192.169.0.1", ""),
        ("100.63.255.255", ""), ("100.128.0.1", ""), ("126.0.0.1", ""), ("128.0.0.1", ""), ("223.255.255.255", ""),
        ("2001:db8::1", ""), ("::2", ""), ("64:ff9b::808:808", ""), ("::ffff:8.8.8.8", ""),
    ])
    func anAddressIsOfTheClassesThatItOrWhatItWrapsIsOf(text: String, names: String) throws {
        let address = try #require(IPAddress(text))
        let found = AddressClass.classes(of: address).map(\.rawValue).sorted().joined(separator: " ")
        #expect(found == names)
    }

    private func rules(_ blocked: [AddressRules.Rule], _ allowed: [AddressRules.Rule] = []) -> AddressRules {
        AddressRules(blocked: blocked, allowed: allowed)
    }

    private func range(_ text: String, _ bits: Int? = nil) throws -> AddressRules.Rule {
        let address = try #require(IPAddress(text))
        return .range(try #require(AddressRange(address, prefixLength: bits)))
    }

    private func objection(
        _ rules: AddressRules, _ text: String, _ client: ClientPlace = .thisMachine
    ) throws -> String? {
        switch AddressGuard(rules, client: client).objection(to: try #require(IPAddress(text))) {
        case .blocked(let rule): "\(rule)"
        case .loopbackFromElsewhere: "elsewhere"
        case .insideFromOutside: "inside"
        case nil: nil
        }
    }

    @Test func aRangeIsBlockedInEveryWrapping() throws {
        let rules = rules([try range("10.0.0.0", 8), try range("2001:db8::", 32)])
        for text in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:0a01:0203::1", "::ffff:0:10.1.2.3"] {
            #expect(try objection(rules, text) == "10.0.0.0/8", "\(text)")
        }
        #expect(try objection(rules, "2001:db8::5") == "2001:db8::/32")
        #expect(try objection(rules, "11.0.0.1") == nil)
        #expect(try objection(rules, "127.0.0.1") == nil)
        // A mapped range is the IPv4 range.
        #expect(try objection(self.rules([try range("::ffff:10.0.0.0", 104)]), "10.1.2.3") == "10.0.0.0/8")
        #expect(try objection(self.rules([try range("0.0.0.0")]), "0.0.0.0") == "0.0.0.0")
    }

    @Test func anExceptionForARangeLetsItsAddressesThroughForAClassThatClassAlone() throws {
        let blocked: [AddressRules.Rule] = [
            .kind(.linkLocal), .kind(.metadata), .kind(.private), try range("10.9.0.0", 16),
        ]
        let one = rules(blocked, [try range("10.9.1.1"), try range("169.254.1.0", 24)])
        #expect(try objection(one, "10.9.1.1") == nil)
        #expect(try objection(one, "::ffff:10.9.1.1") == nil)
        #expect(try objection(one, "10.9.1.2") == "10.9.0.0/16")
        #expect(try objection(one, "10.8.1.1") == "private")
        #expect(try objection(one, "169.254.1.7") == nil)
        #expect(try objection(one, "169.254.169.254") == "link-local")
        let kinds = rules(blocked, [.kind(.linkLocal), .kind(.private)])
        #expect(try objection(kinds, "169.254.1.7") == nil)
        #expect(try objection(kinds, "169.254.169.254") == "metadata")
        #expect(try objection(kinds, "10.8.1.1") == nil)
        #expect(try objection(kinds, "10.9.1.1") == "10.9.0.0/16")
    }

    @Test func loopbackIsOutOfTheReachOfClientsFromElsewhereUnlessAnExceptionSaysOtherwise() throws {
        for text in ["127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "::ffff:0:127.0.0.1"] {
            #expect(try objection(rules([]), text) == nil)
            #expect(try objection(rules([]), text, .elsewhere) == "elsewhere")
            #expect(try objection(rules([], [.kind(.loopback)]), text, .elsewhere) == nil)
        }
        let one = rules([], [try range("127.0.0.1")])
        #expect(try objection(one, "127.0.0.1", .elsewhere) == nil)
        #expect(try objection(one, "127.0.0.2", .elsewhere) == "elsewhere")
        #expect(try objection(one, "192.0.2.1", .elsewhere) == nil)
    }

    @Test(arguments: [
        ("127.0.0.1", ClientPlace.thisMachine), ("127.9.9.9", .thisMachine), ("::1", .thisMachine),
        ("::ffff:127.0.0.1", .thisMachine), ("192.0.2.1", .elsewhere), ("2001:db8::1", .elsewhere),
        // Any host may have one of these.
        ("64:ff9b::7f00:1", .elsewhere), ("2002:7f00:1::1", .elsewhere), ("::ffff:0:127.0.0.1", .elsewhere),
        ("::127.0.0.1", .elsewhere), ("2001:db8::5efe:127.0.0.1", .elsewhere),
    ])
    func aClientIsOfThisMachineIfItComesFromLoopbackItself(peer: String, place: ClientPlace) throws {
        #expect(ClientPlace(of: try #require(IPAddress(peer))) == place)
    }

    @Test func aListenerIsKnownByEveryAddressThatLeadsToIt() throws {
        func address(_ text: String, _ port: UInt16) throws -> SocketAddress {
            SocketAddress(ip: try #require(IPAddress(text)), port: port)
        }
        let one = OwnListeners([try address("127.0.0.1", 80), try address("::1", 81)])
        for text in ["127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1", "::ffff:0.0.0.0"] {
            #expect(one.contains(try address(text, 80)), "\(text)")
            #expect(!one.contains(try address(text, 81)), "\(text)")
        }
        #expect(one.contains(try address("::", 81)))
        #expect(!one.contains(try address("127.0.0.2", 80)))
        let every = OwnListeners([try address("0.0.0.0", 80), try address("::", 81)])
        #expect(every.contains(try address("127.0.0.2", 80)))
        #expect(every.contains(try address("0.0.0.0", 80)))
        #expect(!every.contains(try address("192.0.2.1", 80)), "not this machine's")
        #expect(!every.contains(try address("::1", 80)))
    }
}
