import Foundation
import Testing

/// What goes into a bundle, and what never does.
@Suite(.serialized) struct BundleCreateTests {
    private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    @Test func thePinFileGoesWithWhatItNames() throws {
        let bed = try BundleBed(isSigned: false)
        try FileManager.default.createDirectory(
            atPath: bed.bed.path("policy/certs"), withIntermediateDirectories: true)
        try bed.makeCertificate("policy/certs/a.pem")
        let pins = """
            hosts:
              - match: a.test
                pinning: public-key
                pins: [\(Self.pin), {file: ./certs//a.pem}]
              - match: b.test
                pinning: public-key
                pins: [\(Self.pin), {file: certs/a.pem}]

            """
        try bed.bed.write("policy/fleet.yaml", pins)
        let outcome = try bed.bundle(
            "create", "policy.bundle", "--pins", "policy/fleet.yaml", "--expires", "2999-01-01", "--group", "web",
            "--group", "db", "--stage", "10", "--local", "any", "--note", "first\u{1B}", "--version", "7")
        bed.expectDone(outcome)
        #expect(outcome.errors == "")
        let shown = try bed.bundle("show", "policy.bundle", "--json")
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(shown.output.utf8)) as? [String: Any])
        let bundle = try #require(object["bundle"] as? [String: Any])
        #expect(bundle["version"] as? Int == 7)
        #expect(bundle["expires"] as? String == "2999-01-01T00:00:00Z")
        #expect(bundle["groups"] as? [String] == ["web", "db"])
        #expect(bundle["stage"] as? Int == 10)
        #expect(bundle["local"] as? String == "any")
        #expect(bundle["note"] as? String == "first\u{1B}")
        let files = try #require(bundle["files"] as? [[String: Any]])
        #expect(files.map { $0["path"] as? String } == ["pins.yaml", "certs/a.pem"])
        // The files are unchanged.
        #expect(try bed.bundle("show", "policy.bundle", "--extract", "pins.yaml").output == pins)
        #expect(
            try bed.bundle("show", "policy.bundle", "--extract", "certs/a.pem").output
                == bed.bed.read("policy/certs/a.pem"))
        let text = try bed.bundle("show", "policy.bundle").output
        #expect(text.contains("for machines of web, db, 10 of 100"))
        #expect(text.contains("note: first\\u{1b}"))
        #expect(!(try bed.bed.read("policy.bundle").contains("PRIVATE")))
    }

    @Test(arguments: [
        (
            "request: {authorization: {user: a, password_file: secret.txt}}",
            "error: password_file: secret.txt is a secret or private key, which a bundle never "
                + "carries; move the entry to the pin file of the machine that has it"
        ),
        (
            "request: {headers: {X-Token: {file: secret.txt}}}",
            "error: file: secret.txt is a secret or private key, which a bundle never carries; move "
                + "the entry to the pin file of the machine that has it"
        ),
        (
            "client_certificate: {certificate: a.pem, private_key: a.pem.key}",
            "error: private_key: a.pem.key is a secret or private key, which a bundle never carries; "
                + "move the entry to the pin file of the machine that has it"
        ),
        (
            "session: {credentials: {user: a, password_file: secret.txt}}",
            "error: password_file: secret.txt is a secret or private key, which a bundle never "
                + "carries; move the entry to the pin file of the machine that has it"
        ),
        (
            "{pinning: public-key, pins: [{file: ../a.pem}]}",
            "error: file: ../a.pem is a path with \"..\"; a bundle takes "
                + "files below the directory of the pin file"
        ),
        (
            "{pinning: public-key, pins: [{file: ABSOLUTE}]}",
            "error: file: ABSOLUTE is an absolute path; a bundle takes files below the directory of "
                + "the pin file"
        ),
    ]) func secretsAndFilesFromElsewhereAreRefused(line: String, message: String) throws {
        let bed = try BundleBed(isSigned: false)
        try bed.makeCertificate("a.pem")
        try bed.copy("a.pem", to: "../a.pem")
        try bed.bed.write("secret.txt", "hidden-word\n")
        chmod(bed.bed.path("secret.txt"), 0o600)
        // Those in braces are keys of the entry itself.
        let keys = line.hasPrefix("{") ? String(line.dropFirst().dropLast()) : line
        let entry =
            line.hasPrefix("{")
            ? "  - {match: a.test, action: intercept,\n     \(keys)}" : "  - match: a.test\n    \(keys)"
        try bed.bed.write(
            "pins.yaml", "hosts:\n\(entry)\n".replacing("ABSOLUTE", with: bed.bed.path("a.pem")))
        let outcome = try bed.bundle("create", "policy.bundle", "--pins", "pins.yaml", "--expires", "90d")
        #expect(outcome.code == 78)
        #expect(outcome.output == "")
        let errors = outcome.errors.replacing(bed.bed.path("a.pem"), with: "ABSOLUTE")
        #expect(errors.hasPrefix("pins.yaml:3:"))
        #expect(errors.contains(": \(message)\n"), "\(errors)")
        #expect(!outcome.errors.contains("hidden-word"))
        #expect(!FileManager.default.fileExists(atPath: bed.bed.path("policy.bundle")))
    }

    @Test func whatCheckRefusesIsRefused() throws {
        let bed = try BundleBed(isSigned: false)
        try bed.bed.write("pins.yaml", "hosts:\n  - match: a.test\n    pinning: public-key\n    pinz: []\n")
        let outcome = try bed.bundle("create", "policy.bundle", "--pins", "pins.yaml", "--expires", "90d")
        #expect(outcome.code == 78)
        #expect(outcome.errors.contains("pins.yaml:4:"))
        #expect(outcome.errors.contains("pinz"))
        try bed.bed.write(
            "pins.yaml",
            "hosts:\n  - match: a.test\n    enforcement: report\n    pinning: public-key\n"
                + "    pins: [\(Self.pin)]\n")
        let warned = try bed.bundle("create", "policy.bundle", "--pins", "pins.yaml", "--expires", "90d")
        #expect(warned.code == 0)
        #expect(warned.errors.contains("pins.yaml:3:18: warning: insecure: enforcement is report"))
        let missing = try bed.bundle("create", "policy.bundle", "--pins", "none.yaml", "--expires", "90d")
        #expect(missing.code == 1)
        #expect(missing.errors == "pinproxy: none.yaml: No such file or directory\n")
    }

    @Test(arguments: [
        (["--expires", "soon"], "--expires: \"soon\" is neither a time (90d, 12h) nor a date"),
        (["--expires", "2001-01-01"], "--expires: 2001-01-01 is not in the future"),
        (["--expires", "9999999d"], "--expires: 9999999d is after the year 9999"),
        (["--expires", "9d", "--stage", "0"], "--stage: 0 is not from 1 to 100"),
        (["--expires", "9d", "--stage", "101"], "--stage: 101 is not from 1 to 100"),
        (["--expires", "9d", "--version", "0"], "--version: 0 is not 1 or more"),
        (["--expires", "9d", "--group", "a b"], "--group: \"a b\" is not the name of a group"),
        (["--expires", "9d", "--local", "loosen"], "--local: \"loosen\" is neither tighten nor any"),
        ([], "--expires"),
    ]) func wrongWordsAreWrongUsage(arguments: [String], message: String) throws {
        let bed = try CommandBed("bundle")
        let outcome = try CommandBed.run(
            [CommandBed.executable, "bundle", "create", "policy.bundle", "--pins", "pins.yaml"] + arguments,
            in: bed.directory, environment: bed.environment)
        #expect(outcome.code == 2)
        #expect(outcome.errors.contains(message), "\(outcome.errors)")
    }

    @Test func versionsGoUp() throws {
        let bed = try BundleBed()
        bed.expectDone(try bed.bundle("create", "policy.bundle", "--pins", "pins.yaml", "--expires", "90d"))
        #expect(try bed.bundle("show", "policy.bundle").output.contains("bundle version 2"))
        let outcome = try bed.bundle(
            "create", "policy.bundle", "--pins", "pins.yaml", "--expires", "90d", "--version", "2")
        #expect(outcome.code == 1)
        #expect(outcome.errors == "pinproxy: policy.bundle: --version: 2 is not above 2, which is in the file\n")
    }
}
