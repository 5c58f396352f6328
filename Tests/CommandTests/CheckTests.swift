import Foundation
import TestAuthority
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
                \(bed.path("pinproxy.yaml")):3:14: error: level: unknown value "loud"; write trace, debug, info, notice, warning, error or critical
                \(bed.path("pins.yaml")):3:14: error: pinning is public-key and there are no pins; add pins, or write pinning: none

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

    /// Its clock is the machine's.
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
            "pins.yaml", "hosts: [{match: a.test, client_certificate: {certificate: client.pem, private_key: client.key}}]\n")
        let outcome = try bed.configured("check")
        #expect(outcome.code == 0)
        #expect(outcome.errors.contains("pins.yaml:1:17: warning: a.test: the client certificate CN=client.test \(word)"))
        #expect(outcome.errors.hasSuffix(", \(distance)\n"), "\(outcome)")
        #expect(outcome.output.hasSuffix("the configuration can be used, 1 warning\n"))
        let lint = try bed.configured("lint", rest: ["--offline"])
        #expect(lint.output.contains("\(distance) [certificate-expires]"), "\(lint)")
    }

    /// Days are meant, not seconds.
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
