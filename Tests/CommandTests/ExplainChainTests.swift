import Foundation
import PinproxySecurity
import PinproxyTestAuthority
import Testing

@testable import pinproxy

/// `pinproxy explain --chain`: a rotation rehearsed without a server, and everything that may be wrong with it.
@Suite(.serialized) struct ExplainChainTests {
    private static let now = CertificateTemplate.now

    /// A host with its current chain and the next one, which has another key and becomes valid in 25 days.
    private struct Rotation {
        let bed: CommandBed
        let root: HeldCertificate
        let old: HeldCertificate
        let new: HeldCertificate

        init(pins: (HeldCertificate, HeldCertificate) -> [HeldCertificate]) throws {
            root = try .root()
            let intermediate = try root.issue(.intermediate("Issuing CA"))
            old = try intermediate.issue(.leaf("api.test"))
            new = try intermediate.issue(
                .leaf("api.test").with {
                    $0.notBefore = now + 25 * CertificateTemplate.day
                    $0.notAfter = now + 90 * CertificateTemplate.day
                })
            bed = try CommandBed(configuration: "upstream: {trust: [root.pem]}\npins: pins.yaml\n")
            try bed.write("root.pem", root.pem)
            try bed.write("old.pem", old.chainPEM)
            try bed.write("new.pem", new.chainPEM)
            var list = ""
            for (index, held) in pins(old, new).enumerated() {
                try bed.write("pin\(index).pem", held.pem)
                list += "      - file: pin\(index).pem\n"
            }
            try bed.write("pins.yaml", "hosts:\n  - match: api.test\n    pinning: public-key\n    pins:\n" + list)
        }

        func explain(_ chain: String, at date: String, _ more: String...) throws -> CommandBed.Outcome {
            try bed.configured(
                "explain", rest: ["api.test", "--chain", bed.path(chain), "--at", date] + more)
        }
    }

    /// The date is the one of --at, as everywhere.
    @Test func aDateOfEnforcementIsRehearsed() throws {
        let rotation = try Rotation { old, _ in [old] }
        let pins = try String(contentsOfFile: rotation.bed.path("pins.yaml"), encoding: .utf8)
        try rotation.bed.write("pins.yaml", pins + "    enforcement: report\n    enforce_from: 2030-02-14\n")
        let before = try rotation.explain("new.pem", at: "2030-02-13")
        #expect(before.code == 0)
        #expect(before.output.contains("reported until 2030-02-14 (enforce_from)"), "\(before)")
        let after = try rotation.explain("new.pem", at: "2030-02-14", "--json")
        #expect(after.code == 1)
        let report = try #require(try JSONSerialization.jsonObject(with: Data(after.output.utf8)) as? [String: Any])
        let rollout = try #require(report["rollout"] as? [String: Any])
        #expect(rollout["key"] as? String == "enforce_from")
        #expect(rollout["value"] as? String == "2030-02-14")
        #expect(rollout["state"] as? String == "enforced")
        #expect(rollout["text"] as? String == "enforced since 2030-02-14 (enforce_from)")
    }

    @Test func aRotationIsRehearsed() throws {
        let ready = try Rotation { [$0, $1] }
        #expect(try ready.explain("old.pem", at: "2030-01-01").code == 0)
        #expect(try ready.explain("new.pem", at: "2030-02-15").code == 0)
        let early = try ready.explain("new.pem", at: "2030-01-01")
        #expect(early.code == 1)
        #expect(early.output.contains("failed   dates"))
        #expect(
            early.output.contains(
                "Refused: a client gets 502 Certificate verification failure for api.test: not yet valid"))
        let late = try ready.explain("old.pem", at: "2030-02-15")
        #expect(late.code == 1)
        #expect(late.output.contains("expired"))
    }

    @Test func aForgottenPinIsFoundBeforeTheDay() throws {
        let forgotten = try Rotation { old, _ in [old] }
        #expect(try forgotten.explain("old.pem", at: "2030-01-01").code == 0)
        let outcome = try forgotten.explain("new.pem", at: "2030-02-15T12:00:00+01:00")
        #expect(outcome.code == 1)
        #expect(outcome.output.contains("failed   pins"))
        #expect(outcome.output.contains("Certificate pinning failure for api.test"))
        #expect(outcome.output.contains("chain     of \(forgotten.bed.path("new.pem")); no connection was made"))
        #expect(outcome.output.contains("date      2030-02-15, as asked for by --at"))
    }

    @Test func theObjectHasTheKeysOfItsHelp() throws {
        let rotation = try Rotation { [$0, $1] }
        let outcome = try rotation.explain("old.pem", at: "2030-01-01", "--json")
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
        #expect(
            Set(object.keys) == [
                "host", "port", "at", "entry", "also_matching", "action", "verified", "chain", "checks", "matched_pin",
                "matched_depth", "let_through", "reported",
            ])
        let help = try rotation.bed.run("explain", "--help").output
        for key in object.keys { #expect(help.contains(key)) }
    }

    @Test func deniedAndTunnelledHostsLookAtNoChain() throws {
        let rotation = try Rotation { [$0, $1] }
        try rotation.bed.write("pins.yaml", "defaults: {action: tunnel}\nhosts: [{match: api.test, action: deny}]\n")
        let denied = try rotation.explain("old.pem", at: "2030-01-01")
        #expect(denied.code == 1)
        #expect(denied.output.contains("Refused: a client gets 403 api.test:443 denied by policy"))
        let tunnel = try rotation.bed.configured(
            "explain", rest: ["other.test", "--chain", rotation.bed.path("old.pem")])
        #expect(tunnel.code == 0)
        #expect(tunnel.output.contains("action    tunnel: bytes pass untouched"))
    }

    @Test func refusesWhatIsNoChain() throws {
        let rotation = try Rotation { [$0, $1] }
        let bed = rotation.bed
        try bed.write("key.pem", rotation.old.keyPEM)
        try bed.write("empty.pem", "")
        try bed.write("cut.pem", String(rotation.old.pem.dropLast(40)))
        try bed.write("junk.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        for (name, words) in [
            ("key.pem", "it contains no certificate"), ("empty.pem", "the file is empty"),
            ("cut.pem", "CERTIFICATE begins here and has no END line"),
            ("junk.pem", "line 1: certificate 1 in it is broken"), ("missing.pem", "No such file or directory"),
        ] {
            let outcome = try rotation.explain(name, at: "2030-01-01")
            #expect(outcome.code == 1, "\(name)")
            #expect(outcome.output == "", "\(name)")
            #expect(outcome.errors.contains("\(bed.path(name)): "), "\(name): \(outcome.errors)")
            #expect(outcome.errors.contains(words), "\(name): \(outcome.errors)")
        }
    }

    @Test func namesOfOtherAlphabetsAreShownBothWays() throws {
        let rotation = try Rotation { [$0, $1] }
        let outcome = try rotation.bed.configured(
            "explain", rest: ["Bücher.test:8443", "--chain", rotation.bed.path("old.pem"), "--at", "2030-01-01"])
        #expect(outcome.code == 1)
        #expect(outcome.output.contains("\nhost      xn--bcher-kva.test:8443 (bücher.test)\n"))
        #expect(outcome.output.contains("failed   name"))
    }

    @Test func takesOneCertificateInDER() throws {
        let rotation = try Rotation { [$0, $1] }
        try Data(rotation.old.der).write(to: URL(fileURLWithPath: rotation.bed.path("old.der")))
        let outcome = try rotation.explain("old.der", at: "2030-01-01")
        // Its issuer isn't sent, and the text says that.
        #expect(outcome.code == 1)
        #expect(outcome.output.contains("unknown issuer"))
    }

    @Test(arguments: [
        ["api.test", "--at", "tomorrow"], ["api.test", "--at", "2030-02-30"], ["api.test", "--at", "2030-1-1"],
        ["api.test", "--at", ""], ["api.test:x"], ["api.test:" + "99999"], [], ["::1:443:x"], ["a b"],
    ]) func refusesWrongUsage(_ arguments: [String]) throws {
        let outcome = try CommandBed().configured("explain", rest: arguments)
        #expect(outcome.code == 2)
        #expect(outcome.output == "")
        #expect(outcome.errors.contains("Usage: pinproxy explain"))
    }

    @Test func aWrongConfigurationIsSaid() throws {
        let bed = try CommandBed(configuration: "pinz: null\n")
        let outcome = try bed.configured("explain", rest: ["api.test"])
        #expect(outcome.code == 78)
        #expect(outcome.errors.contains("pinproxy.yaml:1:1: error: unknown key \"pinz\""))
    }

    @Test func coloursAreOnlyForThoseWhoWantThem() {
        #expect(Palette(isColoured: false).paint("failed", .failed) == "failed")
        #expect(Palette(isColoured: true).paint("failed", .failed) == "\u{1B}[31mfailed\u{1B}[0m")
    }
}
