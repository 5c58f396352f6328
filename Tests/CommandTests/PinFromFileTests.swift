import Foundation
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import pinproxy

/// `pinproxy pin --from`, and wrong usage of `pinproxy pin`.
@Suite(.serialized) struct PinFromFileTests {
    private let root = try? HeldCertificate.root()

    private func leaf(_ names: String...) throws -> HeldCertificate {
        let root = try #require(root)
        let intermediate = try root.issue(.intermediate("Issuing CA"))
        return try intermediate.issue(
            .leaf().with {
                $0.dnsNames = names
                $0.commonName = names.first
            })
    }

    private func spkiPin(_ held: HeldCertificate) throws -> String {
        "sha256/\(try Certificate(der: held.der).spkiSHA256.base64)"
    }

    @Test func aChainGivesAnEntryForItsName() throws {
        let bed = try CommandBed()
        let leaf = try leaf("api.test", "www.api.test")
        try bed.write("chain.pem", leaf.chainPEM)
        let outcome = try bed.configured("pin", rest: ["--from", bed.path("chain.pem")])
        #expect(outcome.code == 0)
        #expect(outcome.output.contains("NOT VERIFIED"))
        #expect(outcome.output.contains("\n  - match: api.test\n    pinning: public-key\n    pins:\n"))
        // A file doesn't say whether it is in use.
        #expect(outcome.output.contains("      - \(try spkiPin(leaf))   # the leaf's key"))
        #expect(!outcome.output.contains("in use"))
        #expect(outcome.output.contains("      - \(try spkiPin(leaf.issuers[0]))   # backup"))
        // Lines for an existing entry.
        let lines = try bed.configured("pin", rest: ["--from", bed.path("chain.pem"), "--lines"]).output
        #expect(
            lines.split(separator: "\n").map { $0.prefix(59).trimmingCharacters(in: .whitespaces) }
                == ["- \(try spkiPin(leaf))", "- \(try spkiPin(leaf.issuers[0]))"])
    }

    @Test func theObjectHasTheKeysOfItsHelp() throws {
        let bed = try CommandBed()
        try bed.write("chain.pem", try leaf("api.test").chainPEM)
        let outcome = try bed.configured("pin", rest: ["--from", bed.path("chain.pem"), "--json"])
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
        #expect(Set(object.keys) == ["file", "verified", "match", "chain", "pins"])
        #expect(object["verified"] as? Bool == false)
        let certificates = try #require(object["chain"] as? [[String: Any]])
        #expect(certificates.count == 2)
        let help = try bed.run("pin", "--help").output
        for key in Array(object.keys) + Array(certificates[0].keys) { #expect(help.contains(key)) }
    }

    @Test func theEntryIsForTheHostThatWasNamed() throws {
        let bed = try CommandBed()
        try bed.write("one.pem", try leaf("*.api.test").pem)
        let own = try bed.configured("pin", rest: ["--from", bed.path("one.pem")])
        #expect(own.output.contains("  - match: \"*.api.test\"\n"))
        #expect(own.output.contains("There is no backup pin"))
        let named = try bed.configured("pin", rest: ["[2001:DB8::1]:8443", "--from", bed.path("one.pem")])
        #expect(named.output.contains("  - match: \"[2001:db8::1]:8443\"\n"))
    }

    @Test(arguments: [
        "null", "192.0.2.7", "2001:db8::7", "[2001:db8::7]:8443", "api.test:8443", "bücher.test", "7.api.test",
    ])
    func anyHostCanBePasted(_ host: String) throws {
        let bed = try CommandBed()
        try bed.write("leaf.pem", try leaf("api.test").chainPEM)
        let outcome = try bed.configured("pin", rest: [host, "--from", bed.path("leaf.pem")])
        #expect(outcome.code == 0, "\(outcome)")
        try bed.write("pins.yaml", "hosts:\n" + outcome.output)
        try bed.write("pinproxy.yaml", "pins: pins.yaml\n")
        let check = try bed.configured("check")
        #expect(check.code == 0 && check.errors == "", "\(check)")
        let explained = try bed.configured("explain", rest: [host, "--chain", bed.path("leaf.pem")])
        #expect(explained.output.contains("pins.yaml:"), "\(explained)")
    }

    @Test(arguments: [TestKey.Kind.p256, .p384, .rsa(2048), .ed25519])
    func aKeyGivesItsPin(_ kind: TestKey.Kind) throws {
        let bed = try CommandBed()
        let key = try TestKey(kind)
        let expected = "sha256/\(try PublicKey(pem: Array(key.publicKeyPEM.utf8)).spkiSHA256.base64)"
        try bed.write("public.pem", key.publicKeyPEM)
        try HeldCertificate.write(key.privateKeyPEM, to: bed.path("private.pem"), mode: 0o600)
        for name in ["public.pem", "private.pem"] {
            let outcome = try bed.configured("pin", rest: ["--from", bed.path(name)])
            #expect(outcome.code == 0)
            #expect(outcome.errors == "")
            #expect(outcome.output.contains("\n      - \(expected)   # the public "))
            #expect(!outcome.output.contains("match:"))
            #expect(!outcome.output.contains("PRIVATE"))
        }
    }

    @Test func derIsReadToo() throws {
        let bed = try CommandBed()
        let leaf = try leaf("api.test")
        let key = try PrivateKey(pem: Array(leaf.keyPEM.utf8))
        let pkcs8 = try #require(
            Data(base64Encoded: leaf.keyPEM.split(separator: "\n").dropFirst().dropLast().joined()))
        try Data(leaf.der).write(to: URL(fileURLWithPath: bed.path("leaf.der")))
        try Data(key.publicKey.der).write(to: URL(fileURLWithPath: bed.path("public.der")))
        try pkcs8.write(to: URL(fileURLWithPath: bed.path("private.der")))
        for name in ["leaf.der", "public.der", "private.der"] {
            let outcome = try bed.configured("pin", rest: ["api.test", "--from", bed.path(name)])
            #expect(outcome.code == 0, "\(name): \(outcome)")
            #expect(outcome.output.contains("  - match: api.test\n"))
            #expect(outcome.output.contains("      - \(try spkiPin(leaf))   # "))
        }
    }

    /// A key is pinned before its certificate exists.
    @Test func aSigningRequestIsReadToo() throws {
        let bed = try CommandBed()
        let held = try leaf("api.test")
        try HeldCertificate.write(held.keyPEM, to: bed.path("key.pem"), mode: 0o600)
        for form in ["PEM", "DER"] {
            let made = try CommandBed.run(
                [
                    "/usr/bin/openssl", "req", "-new", "-key", "key.pem", "-subj", "/CN=api.test", "-outform", form,
                    "-out", "request.\(form)",
                ], in: bed.directory, environment: bed.environment)
            #expect(made.code == 0, "\(made)")
            let outcome = try bed.configured("pin", rest: ["api.test", "--from", bed.path("request.\(form)")])
            #expect(outcome.code == 0, "\(outcome)")
            #expect(
                outcome.output.contains(
                    "      - \(try spkiPin(held))   # the key of a signing request (CN=api.test), EC P-256\n"))
        }
        // A request with an unrelated key.
        let url = URL(fileURLWithPath: bed.path("request.DER"))
        var der = [UInt8](try Data(contentsOf: url))
        der[der.count - 1] ^= 1
        try Data(der).write(to: url)
        let forged = try bed.configured("pin", rest: ["--from", bed.path("request.DER")])
        #expect(forged.code == 1)
        #expect(forged.errors.contains("request.DER: the certificate request is not signed by its own key"))
    }

    @Test func anEncryptedKeyIsNotGuessedAt() throws {
        let bed = try CommandBed()
        try HeldCertificate.write(try leaf("api.test").keyPEM, to: bed.path("key.pem"), mode: 0o600)
        for form in ["PEM", "DER"] {
            let made = try CommandBed.run(
                [
                    "/usr/bin/openssl", "pkcs8", "-topk8", "-in", "key.pem", "-passout", "pass:secret", "-outform",
                    form,
                    "-out", "locked.\(form)",
                ], in: bed.directory, environment: bed.environment)
            #expect(made.code == 0, "\(made)")
            let outcome = try bed.configured("pin", rest: ["--from", bed.path("locked.\(form)")])
            #expect(outcome.code == 1)
            #expect(outcome.errors.contains("the private key is encrypted: decrypt it first"), "\(outcome)")
        }
    }

    @Test func warnsOfAPrivateKeyThatOthersCanRead() throws {
        let bed = try CommandBed()
        try HeldCertificate.write(try leaf("api.test").keyPEM, to: bed.path("open.pem"), mode: 0o644)
        let outcome = try bed.configured("pin", rest: ["--from", bed.path("open.pem")])
        #expect(outcome.code == 0)
        #expect(outcome.errors.contains("open.pem: other users can read the private key; chmod 600"))
    }

    @Test func refusesWhatIsNoKey() throws {
        let bed = try CommandBed()
        let pem = try leaf("api.test").pem
        try bed.write("empty.pem", "\n")
        try bed.write("text.pem", "hello\n")
        try bed.write("cut.pem", String(pem.prefix(pem.count / 2)))
        try bed.write("other.pem", "-----BEGIN DH PARAMETERS-----\nMAYCAQICAQI=\n-----END DH PARAMETERS-----\n")
        for (name, words) in [
            ("empty.pem", "the file is empty"), ("text.pem", "not a certificate, key or signing request"),
            ("cut.pem", "line 1: CERTIFICATE begins here and has no END line"),
            ("other.pem", "it holds DH PARAMETERS"), ("missing.pem", "No such file or directory"),
            (".", "not a regular file"),
        ] {
            let outcome = try bed.configured("pin", rest: ["--from", bed.path(name)])
            #expect(outcome.code == 1, "\(name)")
            #expect(outcome.output == "", "\(name)")
            #expect(outcome.errors.contains(words), "\(name): \(outcome.errors)")
        }
    }

    @Test(arguments: [
        [], ["api.test:port"], ["api.test:0"], ["api.test:65536"], ["https://api.test/"], ["a..test"], ["1.2.3"],
        ["[::1"], ["user@api.test"], [""],
    ]) func refusesWhatIsNoHost(_ arguments: [String]) throws {
        let outcome = try CommandBed().configured("pin", rest: arguments)
        #expect(outcome.code == 2)
        #expect(outcome.output == "")
        #expect(outcome.errors.contains("Usage: pinproxy pin"))
    }

    /// A certificate's subject is untrusted text.
    @Test func aSubjectCannotBreakOutOfItsComment() throws {
        let bed = try CommandBed()
        let subject = "x\n  - match: evil.test\u{85}a\u{2028}b\u{202E}c\u{1B}[2J"
        let held = try HeldCertificate.selfSigned(
            .leaf("api.test").with { $0.subject = [(identifier: "2.5.4.10", text: subject)] })
        try bed.write("odd.pem", held.pem)
        let outcome = try bed.configured("pin", rest: ["--from", bed.path("odd.pem")])
        #expect(outcome.code == 0)
        let breaks: [Character] = ["\u{85}", "\u{2028}", "\u{202E}", "\u{1B}"]
        #expect(!outcome.output.contains { breaks.contains($0) })
        #expect(!outcome.output.contains("\n  - match: evil.test"))
        try bed.write("pins.yaml", "hosts:\n" + outcome.output)
        try bed.write("pinproxy.yaml", "pins: pins.yaml\n")
        #expect(try bed.configured("check").code == 0)
    }

    @Test(.disabled(if: access(ConfigurationOptions.systemFile, F_OK) == 0, "this machine has one"))
    func worksWithNoConfigurationAtAll() throws {
        let bed = try CommandBed()
        try FileManager.default.createDirectory(atPath: bed.path("empty"), withIntermediateDirectories: true)
        let outcome = try CommandBed.run(
            [CommandBed.executable, "pin", "127.0.0.1:1"], in: bed.path("empty"), environment: bed.environment)
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("no configuration: using the system's trust"))
        #expect(outcome.errors.contains("127.0.0.1:1"))
    }
}
