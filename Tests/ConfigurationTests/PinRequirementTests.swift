import Foundation
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxyConfiguration

/// An entry's, or the defaults', requirements on a server besides its pins, and the certificate presented to it.
@Suite struct PinRequirementTests {
    private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private func load(_ pins: String) throws -> Snapshot { try ConfigurationBed(pins: pins).load() }

    @Test func readsWhatIsAskedBesidesPins() throws {
        let snapshot = try load(
            """
            defaults: {min_tls: 1.3, ocsp: require, max_leaf_lifetime: 398d, report_uri: "http://[::1]:8080/r?a=b"}
            hosts:
              - match: a.test
              - match: b.test
                action: verify-tunnel
                pinning: public-key
                pins: [\(Self.pin)]
                min_tls: 1.2
                ocsp: ignore
                max_leaf_lifetime: null
                report_uri: null
                record: true
                expires: 2027-06-30
                on_expiry: deny
              - match: c.test
                min_tls: 1.3
                report_uri: HTTPS://Reports.TEST
            """)
        let inherited = try #require(snapshot.entry(for: "a.test", port: 443))
        #expect(inherited.policy.requirements.minimumTLS == .tls13)
        #expect(inherited.policy.requirements.stapling == .require)
        #expect(inherited.policy.requirements.maximumLeafLifetime == Int64(398 * 86_400))
        let uri = try #require(inherited.reportURI)
        #expect((uri.isSecure, uri.host, uri.port, uri.target) == (false, "::1", 8080, "/r?a=b"))
        #expect(!inherited.records)
        let own = try #require(snapshot.entry(for: "b.test", port: 443))
        #expect(own.action == .verifyTunnel)
        #expect(own.policy.requirements.minimumTLS == .tls12)
        #expect(own.policy.requirements.stapling == .ignore)
        #expect(own.policy.requirements.maximumLeafLifetime == nil)
        #expect(own.reportURI == nil)
        #expect(own.records)
        #expect(own.policy.expiry == PinExpiry(date: 1_814_313_600, action: .deny))
        let third = try #require(snapshot.entry(for: "c.test", port: 443)?.reportURI)
        #expect((third.isSecure, third.host, third.port, third.target) == (true, "reports.test", 443, "/"))
        // A context is not small: hosts with equal settings share one, including those without an entry.
        #expect(inherited.tls === snapshot.defaultTLS)
        #expect(inherited.tls !== own.tls)
        #expect(snapshot.defaultPolicy.digest == inherited.policy.digest)
        #expect(snapshot.defaultPolicy.digest != own.policy.digest)
    }

    @Test func readsAClientCertificateWhoseKeyIsPrivate() throws {
        let authority = try HeldCertificate.root("Client Root")
        let held = try authority.issue(.intermediate("Client Issuer")).issue(.leaf("client.test"))
        let text = "hosts: [{match: a.test, client_certificate: {certificate: c.pem, private_key: k.pem}}]\n"
        let bed = try ConfigurationBed(
            pins: text, ["pins/c.pem": held.chain.map(\.pem).joined(), "pins/k.pem": held.key.privateKeyPEM])
        let key = bed.path("pins/k.pem")
        #expect(chmod(key, 0o640) == 0)
        #expect(
            bed.problems() == [
                "pins/hosts.yaml:1:79: error: private_key: \(key): it is open to other users (mode 640): chmod 600"
                    .replacingOccurrences(of: bed.directory + "/", with: "")
            ])
        #expect(chmod(key, 0o600) == 0)
        let entry = try #require(try bed.load().entry(for: "a.test", port: 443))
        #expect(entry.tls?.identity?.leaf.subject == "CN=client.test")
        #expect(entry.tls?.identity?.chain.count == held.chain.count)
    }

    @Test func readsListsAndLogsAndCanTakeThemBack() throws {
        let root = try HeldCertificate.root("List Root")
        let log = try TestLog("Argon")
        let bed = try ConfigurationBed(
            pins: """
                defaults: {crl_files: certs/list.pem, ct_log_list: certs/logs.cnf}
                hosts:
                  - match: a.test
                  - match: b.test
                    crl_files: []
                    ct_log_list: null
                """,
            [
                "pins/certs/list.pem": HeldCertificate.pem(try root.revocationList(), label: "X509 CRL"),
                "pins/certs/logs.cnf": TestLog.list([log]),
            ])
        let snapshot = try bed.load()
        let requirements = snapshot.defaultPolicy.requirements
        #expect(requirements.revocationLists?.isEmpty == false)
        #expect(requirements.transparencyLogs != nil)
        #expect(snapshot.entry(for: "a.test", port: 443)?.policy.digest == snapshot.defaultPolicy.digest)
        let own = try #require(snapshot.entry(for: "b.test", port: 443)).policy.requirements
        #expect(own.revocationLists == nil)
        #expect(own.transparencyLogs == nil)
    }
}
