import PinproxyConfiguration
import PinproxySecurity
import PinproxyTLS
import Testing

/// Entries share what they have in common, and thousands are stored together: each keeps its own values.
@Suite struct ManyEntriesTests {
    /// The policies of the entries, in turn.
    private static let kinds = [
        "pinning: public-key",
        "pinning: public-key\n    enforcement: report",
        "pinning: public-key\n    action: verify-tunnel",
        "pinning: public-key\n    record: true\n    on_refusal: page",
        "pinning: public-key\n    report_uri: https://reports.test/pins",
        "pinning: public-key\n    expires: 2099-01-01\n    on_expiry: deny",
        "pinning: public-key\n    clients: {users: [0]}",
        "pinning: public-key\n    min_tls: \"1.3\"",
        "pinning: public-key\n    response: {status: [200]}",
        "pinning: public-key\n    expires: 2099-01-01",
        "pinning: public-key\n    validates_domain_name: false",
        "pinning: public-key\n    ocsp: require",
        "pinning: public-key\n    max_leaf_lifetime: 90d",
        "pinning: public-key\n    record: true",
        "pinning: public-key\n    on_refusal: page",
    ]

    private static func pin(_ number: Int) -> String {
        "sha256/\(100_000 + number)\(String(repeating: "A", count: 37))="
    }

    private static func pattern(_ number: Int) -> String {
        switch number % 5 {
        case 0: "host-\(number).example.test"
        case 1: "*.w\(number).test"
        case 2: "**.tree-\(number).test:8443"
        case 3: "10.0.\(number / 250).\(number % 250):443"
        default: "[2001:db8::\(String(number, radix: 16))]:443"
        }
    }

    @Test(arguments: [20, 999, 1000, 5000]) func eachKeepsItsOwn(_ count: Int) throws {
        // More kinds than are remembered: some are forgotten and made again.
        let text =
            "hosts:\n"
            + (0..<count).map { number in
                let kind = Self.kinds[number % Self.kinds.count]
                let leaf = number % 20 < 10 ? "any" : "leaf"
                return
                    """
                      - match: \"\(Self.pattern(number))\"\n    \(kind)\n    position: \(leaf)\n    pins: \
                    [\(Self.pin(number)), \(Self.pin(count + number))]\n
                    """
            }.joined()
        let snapshot = try ConfigurationBed(pins: text).load()
        let entries = snapshot.hosts.entries
        #expect(entries.count == count && snapshot.hosts.values.count == count)
        let lines = text.split(separator: "\n")
        for (number, entry) in entries.enumerated() {
            let value = entry.value
            let kind = Self.kinds[number % Self.kinds.count]
            let matches = entry.pattern.description == Self.pattern(number) && value.pattern == Self.pattern(number)
            #expect(matches, "\(entry.pattern) \(value.pattern) \(number)")
            #expect(
                lines[value.line - 1].contains("\"\(Self.pattern(number))\"") && value.column == 12, "\(value.place)")
            #expect(value.policy.pins.pins.map(\.description) == [Self.pin(number), Self.pin(count + number)])
            #expect(value.policy.pins.pins.map(\.origin) == [Self.pin(number), Self.pin(count + number)])
            #expect(value.policy.position == (number % 20 < 10 ? .any : .leaf))
            #expect((value.policy.enforcement == .report) == kind.contains("enforcement: report"))
            #expect((value.action == .verifyTunnel) == kind.contains("verify-tunnel"))
            #expect(
                value.records == kind.contains("record: true") && value.showsRefusals == kind.contains("on_refusal"))
            #expect(
                value.policy.expiry.map { $0.action == .deny }
                    == (kind.contains("expires") ? kind.contains("deny") : nil))
            #expect(value.policy.validatesDomainName == !kind.contains("validates_domain_name"))
            #expect((value.policy.requirements.stapling == .require) == kind.contains("ocsp"))
            #expect((value.policy.requirements.maximumLeafLifetime != nil) == kind.contains("max_leaf"))
            #expect((value.reportURI != nil) == kind.contains("report_uri"))
            #expect((value.policy.expiry != nil) == kind.contains("expires"))
            #expect((value.clients != nil) == kind.contains("clients"))
            #expect((value.policy.requirements.minimumTLS == .tls13) == kind.contains("min_tls"))
            #expect((value.rules != nil) == kind.contains("response:"))
        }
        // Each entry has its own pin, and so its own policy.
        #expect(Set(entries.map(\.value.policy.digest)).count == count)
    }
}
