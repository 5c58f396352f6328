import Foundation
import PinproxyTestAuthority
import Testing

@Suite struct CheckTests {
    @Test func acceptsWhatCanBeUsed() throws {
        let outcome = try CommandBed(configuration: "pins: null\n").configured("check")
        #expect(outcome.code == 0)
        #expect(outcome.output.hasSuffix("pinproxy.yaml: the configuration can be used\n"))
        #expect(outcome.errors == "")
    }

    @Test func printsEveryProblem() throws {
        let bed = try CommandBed(configuration: "proxy:\n  lisen: x\nlog: {level: loud}\npins: pins.yaml\n")
        try bed.write("pins.yaml", "hosts:\n  - match: a.test\n    pinning: public-key\n")
        let outcome = try bed.configured("check")
        #expect(outcome.code == 78)
        #expect(outcome.output == "")
        #expect(
            outcome.errors == """
                \(bed.path("pinproxy.yaml")):2:3: error: unknown key "lisen" in "proxy"; did you mean "listen"?
                \(bed.path("pinproxy.yaml")):3:14: error: level: unknown value "loud"; write trace, debug, info, \
                notice, warning, error or critical
                \(bed.path("pins.yaml")):3:14: error: pinning is public-key and there are no pins; add pins, or write \
                pinning: none

                """)
    }

    @Test func printsWarningsAndIsContent() throws {
        let bed = try CommandBed(configuration: "pins: pins.yaml\n")
        try bed.write("pins.yaml", "hosts: [{match: a.test, validates_domain_name: false}]\n")
        let outcome = try bed.configured("check")
        #expect(outcome.code == 0)
        #expect(outcome.output.hasSuffix("the configuration can be used, 1 warning\n"))
        #expect(outcome.errors.contains("pins.yaml:1:48: warning: insecure: "))
    }

    /// The authority's certificate is enough: its key may be readable only by others.
    @Test func warnsOfALocalAuthorityThatClientsRefuse() throws {
        let bed = try CommandBed(configuration: "authority: {certificate: own.pem}\npins: pins.yaml\n")
        try bed.write("pins.yaml", "hosts: [{match: a.test}, {match: b.test, action: tunnel}]\n")
        try FileManager.default.createDirectory(atPath: bed.path("state/pinproxy"), withIntermediateDirectories: true)
        let shift = Int64(Date().timeIntervalSince1970) - CertificateTemplate.now
        func valid(_ template: CertificateTemplate) -> CertificateTemplate {
            template.with {
                $0.notBefore += shift
                $0.notAfter += shift
            }
        }
        let permitted = DERWriter.value(0xA0, DERWriter.sequence(DERWriter.value(0x82, Array("corp.test".utf8))))
        let root = try HeldCertificate.selfSigned(valid(.root("Corp Root")))
        let closed = try root.issue(valid(.intermediate("Corp Issuing")))
        let own = try closed.issue(
            valid(.intermediate("Corp Proxies")).with {
                $0.extensions = [("2.5.29.30", true, DERWriter.sequence(permitted))]
                $0.notAfter = shift + CertificateTemplate.now + 3 * CertificateTemplate.day
            })
        try bed.write("state/pinproxy/own.pem", own.chainPEM)
        let place = bed.path("state/pinproxy/own.pem")
        let words = [
            "the local authority expires 20", "CN=Corp Issuing allows 0 authorities below it",
            "the name constraints of CN=Corp Proxies hold for the proxy's certificates (permits corp.test): clients "
                + "refuse those for other hosts, such as a.test of the pin file",
        ]
        let check = try bed.configured("check")
        #expect(check.code == 0 && check.output.hasSuffix(", 3 warnings\n"), "\(check)")
        for words in words { #expect(check.errors.contains("\(place): warning: \(words)"), "\(check)") }
        let lint = try bed.configured("lint", rest: ["--offline"])
        for words in words { #expect(lint.output.contains("\(place): warning: \(words)"), "\(lint)") }
        #expect(lint.output.contains("[authority]"))
        try bed.write("state/pinproxy/own.pem", "nonsense")
        #expect(
            try bed.configured("check").errors
                == "\(place): warning: the local authority can't be read: it contains no certificate\n")
    }

    /// The clock is the machine's.
    @Test(arguments: [(3, "expires", "in 2 days"), (-3, "expired", "3 days ago")])
    func warnsOfAClientCertificateThatEnds(days: Int64, word: String, distance: String) throws {
        let bed = try CommandBed(configuration: "pins: pins.yaml\n")
        let now = Int64(Date().timeIntervalSince1970)
        let held = try HeldCertificate.selfSigned(
            .leaf("client.test").with {
                $0.notBefore = now - 90 * 86_400
                $0.notAfter = now + days * 86_400 - 60
            })
        try bed.write("client.pem", held.pem)
        try bed.write("client.key", held.keyPEM)
        chmod(bed.path("client.key"), 0o600)
        try bed.write(
            "pins.yaml",
            "hosts: [{match: a.test, client_certificate: {certificate: client.pem, private_key: client.key}}]\n")
        let outcome = try bed.configured("check")
        #expect(outcome.code == 0)
        #expect(
            outcome.errors.contains("pins.yaml:1:17: warning: a.test: the client certificate CN=client.test \(word)"))
        #expect(outcome.errors.hasSuffix(", \(distance)\n"), "\(outcome)")
        #expect(outcome.output.hasSuffix("the configuration can be used, 1 warning\n"))
        let lint = try bed.configured("lint", rest: ["--offline"])
        #expect(lint.output.contains("\(distance) [certificate-expires]"), "\(lint)")
    }

    /// The hint for a lifetime suggests days, not seconds.
    @Test func aLifetimeWithoutAUnitIsOfDays() throws {
        let bed = try CommandBed(configuration: "pins: pins.yaml\n")
        try bed.write("pins.yaml", "defaults: {max_leaf_lifetime: 398}\nhosts: []\n")
        #expect(try bed.configured("check").errors.hasSuffix("\"398\" has no unit; write 398d if days are meant\n"))
        try bed.write("pins.yaml", "hosts: []\n")
        try bed.write("pinproxy.yaml", "timeouts: {connect: 10}\n")
        #expect(try bed.configured("check").errors.hasSuffix("\"10\" has no unit; write 10s if seconds are meant\n"))
    }

    @Test(arguments: ["check", "run", "env", "ca"]) func saysThatThereIsNoConfiguration(_ command: String) throws {
        let outcome = try CommandBed().run(command, "--config", "nowhere.yaml")
        #expect(outcome.code == 78)
        #expect(outcome.errors == "nowhere.yaml: error: can't be read: No such file or directory\n")
    }
}
