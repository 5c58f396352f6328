import Testing

@testable import PinproxyConfiguration

/// The limits of every number in the configuration are accepted. Values just outside are refused with their place, key
/// and range.
@Suite struct RangeTests {
    struct Range: Sendable, CustomTestStringConvertible {
        let key: String
        /// Nil: the lowest value is zero, and nothing below it can be written.
        let below: String?
        let lowest: String
        let highest: String
        let over: String
        /// The text around the value.
        var section = ""
        var isInPins = false
        var testDescription: String { key }

        func text(_ value: String) -> String { section.replacing("$", with: "\(key): \(value)") }
    }

    private static func daemon(
        _ section: String, _ key: String, _ below: String?, _ lowest: String, _ highest: String, _ over: String
    ) -> Range {
        Range(key: key, below: below, lowest: lowest, highest: highest, over: over, section: "\(section): {$}\n")
    }

    private static func rule(
        _ block: String, _ key: String, _ below: String?, _ lowest: String, _ highest: String, _ over: String
    ) -> Range {
        Range(
            key: key, below: below, lowest: lowest, highest: highest, over: over,
            section: "hosts:\n  - {match: a.test, \(block): {$}}\n", isInPins: true)
    }

    private static func throttle(
        _ key: String, _ below: String?, _ lowest: String, _ highest: String, _ over: String, beside other: String
    ) -> Range {
        Range(
            key: key, below: below, lowest: lowest, highest: highest, over: over,
            section: "hosts:\n  - {match: a.test, request: {throttle: {$, \(other)}}}\n", isInPins: true)
    }

    static let ranges = [
        daemon("timeouts", "connect", "0s", "1ms", "1h", "3600001ms"),
        daemon("timeouts", "tls_handshake", "0s", "1ms", "1h", "3600001ms"),
        daemon("timeouts", "idle_client", "0s", "1ms", "1d", "86400001ms"),
        daemon("timeouts", "idle_upstream", "0s", "1ms", "1d", "86400001ms"),
        daemon("timeouts", "first_byte", "0s", "1ms", "1d", "86400001ms"),
        daemon("timeouts", "drain", nil, "0s", "1d", "86400001ms"),
        daemon("timeouts", "drain_tunnels", nil, "0s", "1d", "86400001ms"),
        daemon("timeouts", "handover", nil, "0s", "1d", "86400001ms"),
        daemon("limits", "request_head", "1023", "1KiB", "16MiB", "16777217"),
        daemon("limits", "response_head", "1023", "1KiB", "16MiB", "16777217"),
        daemon("limits", "clients", "0", "1", "1000000", "1000001"),
        Range(
            key: "inspected_body", below: nil, lowest: "0", highest: "1GiB", over: "1073741825",
            section: "limits: {$, bodies: 1GiB}\n"),
        daemon("limits", "replay_body", nil, "0", "1GiB", "1073741825"),
        Range(
            key: "bodies", below: "65535", lowest: "64KiB", highest: "1024GiB", over: "1099511627777",
            section: "limits: {$, inspected_body: 0}\n"),
        daemon("limits", "minimum_rate", "0/1s", "1/1ms", "1GiB/1d", "1073741825/1s"),
        daemon("limits", "minimum_rate", "1/0s", "1/1ms", "1/1d", "1/86400001ms"),
        daemon("authority", "leaf_lifetime", "3599s", "1h", "89d", "7689601s"),
        daemon("proxy", "workers", "0", "1", "1024", "1025"),
        rule("session", "timeout", "0s", "1ms", "1d", "86400001ms"),
        rule("session", "max_redirects", "0", "1", "100", "101"),
        rule("session", "max_active", "0", "1", "100000", "100001"),
        rule("response", "max_body", nil, "0", "1024GiB", "1099511627777"),
        throttle("packet", "0", "1", "16MiB", "16777217", beside: "delay: 1ms"),
        throttle("delay", "0s", "1ms", "60s", "60001ms", beside: "packet: 1"),
        Range(
            key: "max_leaf_lifetime", below: "86399s", lowest: "1d", highest: "36500d", over: "3153600001s",
            section: "hosts:\n  - {match: a.test, $}\n", isInPins: true),
    ]

    private func problems(_ range: Range, _ value: String) throws -> [String] {
        guard range.isInPins else {
            let text = range.text(value) + "upstream: {trust: ca.pem}\npins: pins/hosts.yaml\n"
            let bed = try ConfigurationBed(pins: "hosts: []\n")
            try bed.write("pinproxy.yaml", Array(text.utf8))
            return bed.problems()
        }
        return try ConfigurationBed(pins: range.text(value)).problems()
    }

    @Test(arguments: ranges) func itsEndsAreTaken(_ range: Range) throws {
        for value in [range.lowest, range.highest] { #expect(try problems(range, value) == [], "\(value)") }
    }

    @Test(arguments: ranges) func besideThemItIsRefused(_ range: Range) throws {
        for value in [range.below, range.over].compactMap(\.self) {
            let problems = try problems(range, value)
            let file = range.isInPins ? "pins/hosts.yaml:2:" : "pinproxy.yaml:1:"
            #expect(problems.count == 1, "\(problems)")
            let problem = problems.first ?? ""
            #expect(
                problem.contains(file) && problem.contains("error: \(range.key): ") && problem.contains("out of range"),
                "\(problem)")
        }
    }
}
