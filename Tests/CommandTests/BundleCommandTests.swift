import Foundation
import Testing

@Suite(.serialized) struct BundleCommandTests {
    private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    private static let other = "sha256/AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="

    /// The commands of docs/bundles.md, run verbatim.
    @Test func theCeremonyOfTheManualWorks() throws {
        let root = URL(filePath: #filePath).appending(path: "../../..").standardized
        let page = try String(contentsOf: root.appending(path: "docs/bundles.md"), encoding: .utf8)
        let section = try #require(page.firstRange(of: "## Ten commands")).upperBound
        let block = page[section...].split(separator: "```")[1]
        let commands = block.split(separator: "\n").filter { $0.hasPrefix("$ ") }.map { $0.dropFirst(2) }
        #expect(commands.count == 10)
        let bed = try CommandBed("ceremony")
        try bed.write("pins.yaml", "hosts: []\n")
        var environment = bed.environment
        environment["PATH"] = (CommandBed.executable as NSString).deletingLastPathComponent + ":/usr/bin:/bin"
        let outcome = try CommandBed.run(
            ["/bin/bash", "-euc", commands.joined(separator: "\n")], in: bed.directory, environment: environment)
        #expect(outcome.code == 0, "\(outcome.errors)")
        #expect(outcome.errors == "")
        #expect(outcome.output.contains("policy.bundle: verified\nroot version 1, "))
        #expect(outcome.output.contains("note: the first policy"))
    }

    @Test func peopleSignInTurn() throws {
        let bed = try BundleBed()
        try bed.publish()
        #expect(try bed.verify().code == 0)
        bed.expectDone(try bed.bundle("create", "policy.bundle", "--pins", "pins.yaml", "--expires", "90d"))
        bed.expectDone(try bed.bundle("timestamp", "policy.bundle", "--expires", "7d"))
        try bed.sign("timestamp", "job")
        let one = try bed.bundle("sign", "policy.bundle", "--role", "bundle", "--key-file", "alice.pem")
        #expect(one.output.contains("1 of 2 signatures"))
        // The same key again counts once.
        let again = try bed.bundle("sign", "policy.bundle", "--role", "bundle", "--key-file", "alice.pem")
        #expect(again.output == one.output)
        let early = try bed.verify()
        #expect(early.code == 1)
        #expect(early.output == "")
        #expect(
            early.errors
                == "pinproxy: policy.bundle: bundle version 3 has 1 of the 2 signatures needed by root version 1\n")
        try bed.sign("bundle", "bob")
        let done = try bed.verify()
        #expect(done.code == 0)
        #expect(done.output.contains("policy.bundle: verified\n"))
        for name in ["root-1", "root-2", "alice", "bob", "job"] {
            #expect(done.output.contains("signed by \(bed.key(name))"))
        }
    }

    @Test func verificationSaysWhatDoesNotHold() throws {
        let bed = try BundleBed()
        try bed.copy("policy.bundle", to: "first.bundle")
        try bed.publish()
        #expect(try bed.verify("--after", "first.bundle").code == 0)
        let back = try bed.verify("--after", "policy.bundle", file: "first.bundle")
        #expect(back.code == 1)
        #expect(
            back.errors
                == "pinproxy: first.bundle: timestamp version 1 is older than version 2, which was verified before\n")
        let frozen = try bed.verify("--at", "2100-01-01")
        #expect(frozen.code == 1)
        #expect(frozen.errors.contains("root version 1 expired at "))
        let stranger = try bed.bundle("verify", "policy.bundle", "--key", bed.key("alice"))
        #expect(stranger.code == 1)
        #expect(
            stranger.errors
                == "pinproxy: policy.bundle: root version 1 has 0 of the 1 signatures needed by the keys to begin "
                + "with\n"
        )
        let json = try bed.verify("--json")
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
        #expect(Set(object.keys) == ["roots", "bundle", "timestamp"])
        let wrong = try bed.bundle("verify", "policy.bundle", "--key", bed.key("alice"), "--threshold", "2")
        #expect(wrong.code == 2)
        #expect(wrong.errors.contains("--key, --threshold: a threshold of 2 can't be met by 1 key"))
        #expect(try bed.bundle("verify", "policy.bundle").errors.contains("a key to begin with is missing"))
        #expect(try bed.bundle("verify", "policy.bundle", "--key", "ed25519:AA==").code == 2)
        try bed.bed.write("policy.bundle", "{")
        #expect(
            try bed.verify().errors
                == "pinproxy: policy.bundle: file: line 1, column 2: expected a name in quotes, found the end\n")
        #expect(try bed.verify(file: "none").errors == "pinproxy: none: No such file or directory\n")
    }

    @Test func aRootIsRotated() throws {
        let bed = try BundleBed()
        try bed.copy("policy.bundle", to: "first.bundle")
        // Bob's role goes to nobody, and root-2's to alice.
        let made = try bed.bundle(
            "root", "policy.bundle", "--root", bed.key("root-1"), "--root", bed.key("alice"), "--root-threshold", "2",
            "--bundle", bed.key("alice"), "--expires", "365d")
        #expect(made.output.contains("root version 2, "))
        #expect(
            made.output.contains(
                "to be signed by the root keys of version 1, and by 2 of its 2 root keys"))
        // Unsigned, so it is replaced.
        #expect(
            try bed.bundle(
                "root", "policy.bundle", "--root", bed.key("root-1"), "--root", bed.key("alice"), "--root-threshold",
                "2", "--bundle", bed.key("alice"), "--expires", "300d"
            ).output.contains("root version 2, "))
        try bed.sign("root", "root-1", "alice")
        #expect(
            try bed.verify().errors
                == "pinproxy: policy.bundle: root version 2 has 1 of the 2 signatures needed by root version 1\n")
        try bed.sign("root", "root-2")
        #expect(try bed.verify().code == 0)
        #expect(try bed.verify("--after", "first.bundle").code == 0)
        // Bob no longer signs anything.
        let bob = try bed.bundle("sign", "policy.bundle", "--role", "bundle", "--key-file", "bob.pem")
        #expect(bob.code == 1)
        #expect(
            bob.errors
                == "pinproxy: policy.bundle: \(bed.key("bob")) is not a bundle key of root version 2\n")
        #expect(try bed.bundle("show", "policy.bundle").output.contains("root version 2, "))
    }

    @Test func theFirstRootNamesEveryRole() throws {
        let bed = try BundleBed(isSigned: false)
        let outcome = try bed.bundle("root", "policy.bundle", "--root", bed.key("root-1"), "--expires", "9d")
        #expect(outcome.code == 2)
        #expect(outcome.errors == "pinproxy: the first root needs --bundle: a key of that role\n")
        let twice = try bed.bundle(
            "root", "policy.bundle", "--root", bed.key("root-1"), "--root", bed.key("root-1"), "--bundle",
            bed.key("bob"), "--timestamp", bed.key("job"), "--expires", "9d")
        #expect(twice.code == 2)
        #expect(twice.errors.contains("--root: \(bed.key("root-1")) is there twice"))
        #expect(!FileManager.default.fileExists(atPath: bed.bed.path("policy.bundle")))
        let unsigned = try bed.bundle("sign", "policy.bundle", "--role", "root", "--key-file", "job.pem")
        #expect(unsigned.errors == "pinproxy: policy.bundle: No such file or directory\n")
    }

    @Test func keysAreClosedToOthersAndNeverArguments() throws {
        let bed = try BundleBed()
        let before = try bed.bed.read("policy.bundle")
        chmod(bed.bed.path("job.pem"), 0o644)
        let open = try bed.bundle("sign", "policy.bundle", "--role", "timestamp", "--key-file", "job.pem")
        #expect(open.code == 1)
        #expect(open.errors == "pinproxy: job.pem: it is open to other users (mode 644): chmod 600\n")
        // Standard input comes from the caller.
        let input = try CommandBed.run(
            [
                "/bin/sh", "-c", "\"$0\" bundle sign policy.bundle --role timestamp --key-file - < job.pem",
                CommandBed.executable,
            ],
            in: bed.bed.directory, environment: bed.bed.environment)
        #expect(input.code == 0, "\(input.errors)")
        // Ed25519 signatures are deterministic.
        #expect(try bed.bed.read("policy.bundle") == before)
        let empty = try bed.bundle("sign", "policy.bundle", "--role", "timestamp", "--key-file", "-")
        #expect(empty.code == 1)
        #expect(empty.errors.hasPrefix("pinproxy: standard input: not a key"))
        #expect(try bed.openssl("genpkey", "-algorithm", "X25519", "-out", "x.pem").code == 0)
        #expect(
            try bed.bundle("key", "x.pem").errors
                == "pinproxy: x.pem: it is a key of X25519; bundles are signed with Ed25519 "
                + "(openssl genpkey -algorithm ed25519)\n")
        #expect(try bed.openssl("pkey", "-in", "bob.pem", "-pubout", "-out", "bob.pub").code == 0)
        #expect(try bed.bundle("key", "bob.pub").output == bed.key("bob") + "\n")
        #expect(try bed.bundle("sign", "policy.bundle", "--role", "owner", "--key-file", "bob.pem").code == 2)
    }

    @Test func theDifferenceIsOfEntries() throws {
        let bed = try BundleBed(
            pins: """
                hosts:
                  - {match: gone.test, action: deny}
                  - match: a.test
                    pinning: public-key
                    pins: [\(Self.pin)]
                    enforcement: report
                  - match: same.test
                    pinning: public-key
                    pins: [\(Self.pin)]
                    stage: 10

                """)
        try bed.copy("policy.bundle", to: "old.bundle")
        try bed.bed.write(
            "pins.yaml",
            """
            defaults: {min_tls: "1.3"}
            hosts:
              - match: "*.new.test"
                pinning: public-key
                pins: [\(Self.pin)]
                stage: 10%
              # The same as before, in another way.
              - match: same.test
                min_tls: "1.2"
                pins:
                  - \(Self.pin)
                pinning: public-key
                stage: 10%
              - match: a.test
                pinning: public-key
                pins: [\(Self.other)]
                stage: 25%
                min_tls: "1.2"
                session: {timeout: 5s}

            """)
        bed.expectDone(
            try bed.bundle(
                "create", "policy.bundle", "--pins", "pins.yaml", "--expires", "2999-01-01", "--group", "web"))
        let outcome = try bed.bundle("diff", "old.bundle", "policy.bundle")
        #expect(outcome.code == 0, "\(outcome.errors)")
        let lines = outcome.output.split(separator: "\n").map(String.init)
        #expect(lines.first == "bundle version 1 -> 2, for machines of web")
        #expect(
            Array(lines.dropFirst(3))
                == [
                    "~ hosts without an entry", "    min_tls: not set -> 1.3",
                    "+ *.new.test: intercept, pinning public-key, enforce, stage 10%", "    + \(Self.pin)",
                    "- gone.test: deny", "~ a.test", "    enforcement: report -> enforce",
                    "    session.timeout: not set -> 5s", "    stage: not set -> 25%", "    + \(Self.other)",
                    "    - \(Self.pin)",
                ])
        let json = try bed.bundle("diff", "old.bundle", "policy.bundle", "--json")
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
        #expect(
            Set(object.keys) == ["old", "new", "bundle", "defaults", "added", "removed", "changed", "files"])
        let changed = try #require((object["changed"] as? [[String: Any]])?.first)
        #expect(changed["match"] as? String == "a.test")
        #expect(changed["pins_added"] as? [String] == [Self.other])
        #expect(changed["pins_removed"] as? [String] == [Self.pin])
        let same = try bed.bundle("diff", "old.bundle", "old.bundle")
        #expect(same.output.hasSuffix("no machine notices a difference\n"))
    }

    /// Revocation lists are on the machines, and not here.
    @Test func revocationListsAreComparedByName() throws {
        func pins(_ path: String) -> String { "hosts:\n- {match: a.test, crl_files: \(path)}\n" }
        let bed = try BundleBed(pins: pins("/none/old.crl"))
        try bed.copy("policy.bundle", to: "old.bundle")
        try bed.bed.write("pins.yaml", pins("/none/new.crl"))
        bed.expectDone(try bed.bundle("create", "policy.bundle", "--pins", "pins.yaml", "--expires", "90d"))
        let outcome = try bed.bundle("diff", "old.bundle", "policy.bundle")
        #expect(outcome.output.hasSuffix("~ a.test\n    crl_files: /none/old.crl -> /none/new.crl\n"))
        #expect(!(try bed.bundle("show", "policy.bundle").output.contains(".crl")))
        try bed.bed.write("pins.yaml", pins("new.crl"))
        let relative = try bed.bundle("create", "policy.bundle", "--pins", "pins.yaml", "--expires", "90d")
        #expect(relative.code == 78)
        #expect(relative.errors.contains("error: crl_files: new.crl is a revocation list, which changes often"))
    }

    /// A bundle made by other means: a payload that machines would refuse is reported with the file's name.
    @Test func aBundleThatNoMachineTakesIsNotCompared() throws {
        let bed = try BundleBed()
        let text = try bed.bed.read("policy.bundle")
        let former = try #require(text.firstMatch(of: /bundle\+json","payload":"([^"]+)"/)).output.1
        func refusal(of pins: String) throws -> CommandBed.Outcome {
            let file = Data(pins.utf8).base64EncodedString()
            let payload = Data(
                #"{"version":2,"expires":"2999-01-01T00:00:00Z","groups":[],"files":{"pins.yaml":"\#(file)"}}"#.utf8
            ).base64EncodedString()
            try bed.bed.write("bad.bundle", text.replacing(former, with: payload))
            return try bed.bundle("diff", "policy.bundle", "bad.bundle")
        }
        let unknown = try refusal(of: "hostz: []\n")
        #expect(unknown.code == 78)
        #expect(unknown.errors.hasPrefix("bad.bundle: pins.yaml:1:1: error: "))
        #expect(unknown.errors.contains("hostz"))
        // It names a file on the machine.
        let place = bed.bed.path("a.pem")
        try bed.makeCertificate("a.pem")
        let outside = try refusal(
            of: "hosts:\n- {match: a.test, pinning: public-key, pins: [\(Self.pin), {file: \(place)}]}\n")
        #expect(outside.code == 78)
        #expect(outside.errors.hasPrefix("bad.bundle: pins.yaml:2:"))
        #expect(outside.errors.contains("\(place) is an absolute path; a bundle takes files below the directory of "))
    }
}
