import Foundation
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxyConfiguration

/// pins.yaml, valid and invalid. An error must never mean that less is pinned.
@Suite struct PinFileTests {
    private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    private static let otherPin = "sha256/BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA="

    private func load(_ pins: String) throws -> Snapshot { try ConfigurationBed(pins: pins).load() }

    private func problems(_ pins: String) throws -> [String] { try ConfigurationBed(pins: pins).problems() }

    @Test func readsEntries() throws {
        let snapshot = try load(
            """
            defaults: {action: deny}
            hosts:
              - match: API.example.com
                pinning: public-key
                pins:
                  - \(Self.pin)
                  - file: certs/ca.pem
                position: root
              - match: "*.example.com"
                action: tunnel
              - match: "**.example.com:8443"
                pinning: certificate
                pins: [{file: certs/ca.pem}]
              - match: 2001:DB8::1
                pinning: none
                expires: null
                on_expiry: enforce
                client_certificate: null
                request: {}
                response: {}
            """)
        #expect(snapshot.defaultAction == .deny)
        let api = try #require(snapshot.entry(for: "api.EXAMPLE.com.", port: 443))
        #expect(api.action == .intercept)
        #expect(api.pattern == "api.example.com")
        #expect(api.line == 3)
        #expect(api.location.hasSuffix("/pins/hosts.yaml:3"))
        #expect(api.policy.mode == .publicKey)
        #expect(api.policy.pins.pins.map(\.origin) == [Self.pin, "file: certs/ca.pem"])
        #expect(api.policy.position == .root)
        #expect(api.policy.enforcement == .enforce)
        #expect(!api.policy.allowsInvalidCertificates)
        #expect(api.policy.validatesDomainName)
        #expect(snapshot.entry(for: "www.example.com", port: 443)?.action == .tunnel)
        #expect(snapshot.entry(for: "www.example.com", port: 8443)?.action == .tunnel)
        #expect(snapshot.entry(for: "a.b.example.com", port: 8443)?.policy.mode == .certificate)
        #expect(snapshot.entry(for: "a.b.example.com", port: 443) == nil)
        #expect(snapshot.entry(for: "2001:db8:0::1", port: 1)?.policy.mode == PinningMode.none)
        #expect(snapshot.entry(for: "example.org", port: 443) == nil)
        #expect(snapshot.warnings == [])
        #expect(snapshot.files.count == 2)
    }

    /// A host is the same as U-label or A-label, and in any case.
    @Test func readsNamesOfAllLanguages() throws {
        let snapshot = try load("hosts: [{match: '*.BÜCHER.test', action: tunnel}]\n")
        let entry = try #require(snapshot.entry(for: "www.XN--bcher-kva.test", port: 443))
        #expect(entry.pattern == "*.xn--bcher-kva.test")
        #expect(entry.action == .tunnel)
    }

    @Test func strangersMayBeDeniedWithoutAWarning() throws {
        #expect(try load("hosts: [{match: '**.co.uk', action: deny}]\n").warnings == [])
    }

    @Test(arguments: [
        ("", ":1:1: error: the file is empty; write \"hosts: []\" if nothing is to be pinned"),
        ("# only a comment\n", ":1:1: error: the file is empty; write \"hosts: []\" if nothing is to be pinned"),
        ("hosts: {a: b}\n", ":1:8: error: \"hosts\" takes a list of entries (\"- match: …\"), not a mapping"),
        (
            "hosts:\n  -match: a.test\n",
            """
            :2:3: error: \"hosts\" takes a list of entries (\"- match: …\"), not a mapping; there is no space after \
            the dash that begins an element
            """
        ),
        ("host: []\n", ":1:1: error: unknown key \"host\"; did you mean \"hosts\"?"),
        (
            "defaults: {action: allow}\n",
            ":1:20: error: action: unknown value \"allow\"; write intercept, tunnel, verify-tunnel or deny"
        ),
        (
            "defaults: {pinning: none}\n",
            """
            :1:12: error: unknown key \"pinning\" in \"defaults\"; known here: action, min_tls, ocsp, crl_files, \
            ct_log_list, max_leaf_lifetime, report_uri, session, request, response, cache, shared, rules
            """
        ),
        (
            "hosts: [api.example.com]\n",
            ":1:9: error: \"hosts\" must be a mapping (key: value), not \"api.example.com\""
        ),
        ("hosts: [{action: deny}]\n", ":1:9: error: the entry has no \"match\""),
        ("hosts: [{match: }]\n", ":1:17: error: \"match\" has no value; write one, or leave the line out"),
        (
            "hosts:\n  - match: a.test\n  - match: A.test.\n    action: deny\n",
            ":3:12: error: match: a.test already has the entry in line 2"
        ),
        (
            "hosts:\n  - match: bücher.test\n  - match: XN--bcher-kva.test\n",
            ":3:12: error: match: xn--bcher-kva.test (bücher.test) already has the entry in line 2"
        ),
        (
            "hosts: [{match: '*.xn--.test'}]\n",
            ":1:17: error: match: “*.xn--.test” can't be a host name: the label “xn--” is not a valid international "
                + "name: string contains invalid punycode data"
        ),
        (
            "hosts: [{match: '**.co.uk:443', action: tunnel}]\n",
            ":1:17: warning: match: “**.co.uk:443” matches “co.uk” and every name under it, a public suffix where "
                + "anybody can have a name; write the intended domain, as in **.example.co.uk"
        ),
        (
            "hosts: [{match: a.test, pinnig: none}]\n",
            ":1:25: error: unknown key \"pinnig\" in \"hosts\"; did you mean \"pinning\"?"
        ),
        (
            "hosts: [{match: a.test, pinning: public-key}]\n",
            ":1:34: error: pinning is public-key and there are no pins; add pins, or write pinning: none"
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: []}]\n",
            ":1:52: error: pinning is public-key and there are no pins; add pins, or write pinning: none"
        ),
        (
            "hosts: [{match: a.test, pinning: certificate, pins: null}]\n",
            ":1:53: error: pinning is certificate and there are no pins; add pins, or write pinning: none"
        ),
        (
            "hosts: [{match: a.test, pinning: publickey, pins: [\(pin)]}]\n",
            ":1:34: error: pinning: unknown value \"publickey\"; did you mean \"public-key\"?"
        ),
        (
            "hosts: [{match: a.test, pins: [\(pin)]}]\n",
            ":1:31: error: there are pins, but no \"pinning\"; write pinning: public-key or certificate"
        ),
        (
            "hosts: [{match: a.test, pinning: none, pins: [\(pin)]}]\n",
            ":1:34: error: there are pins, but pinning is none; write pinning: public-key or certificate"
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: \(pin)}]\n",
            ":1:52: error: \"pins\" takes a list (\"- sha256/…\"), not \"\(pin)\""
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: [md5/AAAA]}]\n",
            ":1:53: error: pins: “md5/AAAA”: pins by md5 are not accepted; use sha256/"
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: [{fil: x}]}]\n",
            """
            :1:53: error: a pin is sha256/… or file: NAME\nhosts.yaml:1:54: error: unknown key \"fil\" in \"pins\"; \
            did you mean \"file\"?
            """
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: [[x]]}]\n",
            ":1:53: error: a pin is sha256/… or file: NAME, not a list"
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: [{file: certs/none.pem}]}]\n",
            ":1:60: error: pins: certs/none.pem: No such file or directory"
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: [{file: certs/empty.pem}]}]\n",
            ":1:60: error: pins: certs/empty.pem is empty"
        ),
        (
            "hosts: [{match: a.test, pinning: certificate, pins: [\(pin)]}]\n",
            """
            :1:54: error: pins: \(pin) pins a public key, but pinning is certificate; give the certificate as file: \
            NAME, or write pinning: public-key
            """
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: [\(pin), \(pin)]}]\n",
            ":1:106: warning: pins: this is the same pin as one above it"
        ),
        (
            "hosts: [{match: a.test, action: deny, pins: [\(pin)]}]\n",
            ":1:45: warning: pins has no effect: the host is denied"
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: [\(pin)], enforcement: report}]\n",
            ":1:120: warning: insecure: enforcement is report, so a pin that doesn't match is logged and not refused"
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: [\(pin)], allow_invalid_certificates: true}]\n",
            """
            :1:135: warning: insecure: allow_invalid_certificates is true: only the pins authenticate the server
            """
        ),
        (
            "hosts: [{match: a.test, validates_domain_name: false}]\n",
            ":1:48: warning: insecure: validates_domain_name is false: a certificate for any other host will do"
        ),
        (
            "hosts: [{match: a.test, allow_invalid_certificates: true}]\n",
            """
            :1:53: error: allow_invalid_certificates without pins leaves nothing that could prove the host's name; add \
            pins, or set validates_domain_name to false as well and accept anyone\nhosts.yaml:1:53: warning: insecure: \
            allow_invalid_certificates is true: only the pins authenticate the server
            """
        ),
        (
            "hosts: [{match: a.test, expires: 2027-06-30}]\n",
            ":1:34: error: expires: there are no pins that could expire (on_expiry: deny would deny the host)"
        ),
        (
            "hosts: [{match: a.test, pinning: public-key, pins: [\(pin)], expires: 2027-02-30}]\n",
            """
            :1:116: error: expires: \"2027-02-30\" is not a date; write it as 2027-06-30 (from the beginning of that \
            day, UTC)
            """
        ),
        (
            "hosts: [{match: a.test, on_expiry: deny}]\n",
            ":1:36: error: on_expiry: deny without \"expires\": write the date, e.g. expires: 2027-06-30"
        ),
        (
            "hosts: [{match: a.test, on_expiry: allow}]\n",
            ":1:36: error: on_expiry: unknown value \"allow\"; write enforce, report or deny"
        ),
        (
            """
            hosts: [{match: a.test, pinning: public-key, pins: [\(pin)], allow_invalid_certificates: true, expires: \
            2027-06-30, on_expiry: report}]\n
            """,
            """
            :1:135: warning: insecure: allow_invalid_certificates is true: only the pins authenticate the server\n\
            hosts.yaml:1:173: error: on_expiry is report, but with allow_invalid_certificates the pins \
            alone authenticate the server; write on_expiry: enforce or deny
            """
        ),
        (
            "hosts: [{match: a.test, action: tunnel, pinning: public-key, pins: [\(pin)]}]\n",
            """
            :1:50: error: pinning can't be enforced with action: tunnel, where the proxy looks at no certificate; \
            write action: verify-tunnel to have it checked all the same, action: intercept, or remove \
            it\nhosts.yaml:1:68: error: pins can't be enforced with action: tunnel, where the proxy looks at no \
            certificate; write action: verify-tunnel to have it checked all the same, action: intercept, or remove it
            """
        ),
        (
            "hosts: [{match: a.test, action: tunnel, min_tls: 1.3}]\n",
            """
            :1:50: error: min_tls can't be enforced with action: tunnel, where the proxy looks at no certificate; \
            write action: verify-tunnel to have it checked all the same, action: intercept, or remove it
            """
        ),
        (
            "hosts: [{match: a.test, min_tls: 1.1}]\n",
            ":1:34: error: min_tls: TLS 1.1 is not supported; write 1.2 or 1.3"
        ),
        (
            "hosts: [{match: a.test, min_tls: tls13}]\n",
            ":1:34: error: min_tls: \"tls13\" is not a TLS version; write 1.2 or 1.3"
        ),
        (
            "hosts: [{match: a.test, ocsp: if-staple}]\n",
            ":1:31: error: ocsp: unknown value \"if-staple\"; did you mean \"if-stapled\"?"
        ),
        (
            "hosts: [{match: a.test, max_leaf_lifetime: 398}]\n",
            ":1:44: error: max_leaf_lifetime: \"398\" has no unit; write 398d if days are meant"
        ),
        (
            "hosts: [{match: a.test, validates_domain_name: false, allow_invalid_certificates: true, ocsp: require}]\n",
            """
            :1:83: warning: insecure: accepts any certificate of anyone: allow_invalid_certificates is true, \
            validates_domain_name is false and there is no pinning\nhosts.yaml:1:95: error: ocsp can't be checked: \
            with allow_invalid_certificates no chain is verified; write pinning: certificate, or take it back for this \
            host
            """
        ),
        (
            "hosts: [{match: a.test, crl_files: [certs/none.crl]}]\n",
            ":1:37: error: crl_files: pins/certs/none.crl: No such file or directory"
        ),
        (
            "defaults: {crl_files: certs/ca.pem}\n",
            ":1:23: error: crl_files: pins/certs/ca.pem: it contains no revocation list"
        ),
        (
            "defaults: {ct_log_list: certs/none.cnf}\n",
            ":1:25: error: ct_log_list: pins/certs/none.cnf: No such file or directory"
        ),
        (
            "hosts: [{match: a.test, client_certificate: {pkcs12: certs/none.p12, private_key: k}}]\n",
            """
            :1:54: error: pkcs12: pins/certs/none.p12: No such file or directory\nhosts.yaml:1:83: error: private_key \
            can't be combined with pkcs12, which holds certificate and key
            """
        ),
        (
            "hosts: [{match: a.test, report_uri: ftp://reports.test/}]\n",
            """
            :1:37: error: report_uri: reports can't be sent to ftp:; write a URL such as \
            https://reports.example.com/pins
            """
        ),
        (
            "hosts: [{match: a.test, report_uri: 'https://me:secret@reports.test/'}]\n",
            ":1:37: error: report_uri: credentials in the URL are not sent; leave them out"
        ),
        (
            "hosts: [{match: a.test, client_certificate: {certificate: certs/ca.pem}}]\n",
            ":1:45: error: client_certificate: \"private_key\" is missing"
        ),
        (
            "hosts: [{match: a.test, action: verify-tunnel, client_certificate: {certificate: a, private_key: b}}]\n",
            """
            :1:68: error: client_certificate can't be shown with action: verify-tunnel, where TLS is the client's own; \
            write action: intercept
            """
        ),
    ]) func explainsProblems(_ text: String, _ expected: String) throws {
        let problems = try problems(text).map { $0.replacingOccurrences(of: "pins/hosts.yaml", with: "hosts.yaml") }
        #expect(problems.joined(separator: "\n") == "hosts.yaml" + expected)
    }

    @Test func sharesPinsThroughAnchors() throws {
        let snapshot = try load(
            """
            hosts:
              - &corp
                match: a.test
                pinning: public-key
                pins: &pins [\(Self.pin), \(Self.otherPin)]
              - match: b.test
                pinning: public-key
                pins: *pins
              - <<: *corp
                match: c.test
                position: leaf
            """)
        #expect(snapshot.hosts.entries.count == 3)
        for entry in snapshot.hosts.entries { #expect(entry.value.policy.pins.pins.count == 2) }
        #expect(snapshot.entry(for: "c.test", port: 1)?.policy.position == .leaf)
    }

    /// A truncated file, as when it is read while it is written, is refused or means what it says: the host never
    /// appears without its pin.
    @Test func neverLosesAPinToATruncatedFile() throws {
        let text = "hosts:\n  - match: a.test\n    pinning: public-key\n    pins:\n      - \(Self.pin)\n"
        let bytes = Array(text.utf8)
        let bed = try ConfigurationBed(pins: "")
        for length in 0...bytes.count {
            try bed.write("pins/hosts.yaml", Array(bytes[..<length]))
            guard let snapshot = try? bed.load() else { continue }
            if let entry = snapshot.entry(for: "a.test", port: 443), entry.policy.mode != .none {
                #expect(entry.policy.pins.pins.count == 1)
            }
        }
        #expect(try bed.load().entry(for: "a.test", port: 443)?.policy.mode == .publicKey)
    }
}
