import Foundation
import Testing

/// A bed with keys and a bundle, made and signed by the commands.
final class BundleBed {
    let bed: CommandBed
    /// The public halves.
    private(set) var keys: [String: String] = [:]

    /// - Parameter pins: the pin file of the first bundle.
    init(pins: String = "hosts: []\n", isSigned: Bool = true) throws {
        bed = try CommandBed("bundle")
        for name in ["root-1", "root-2", "alice", "bob", "job"] {
            #expect(try openssl("genpkey", "-algorithm", "ed25519", "-out", "\(name).pem").code == 0)
            let outcome = try bed.run("bundle", "key", "\(name).pem")
            #expect(outcome.code == 0, "\(outcome.errors)")
            keys[name] = outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        try bed.write("pins.yaml", pins)
        guard isSigned else { return }
        expectDone(
            try bundle(
                "root", "policy.bundle", "--root", key("root-1"), "--root", key("root-2"), "--root-threshold", "2",
                "--bundle", key("alice"), "--bundle", key("bob"), "--bundle-threshold", "2", "--timestamp", key("job"),
                "--expires", "365d"))
        try sign("root", "root-1", "root-2")
        try publish()
    }

    func key(_ name: String) -> String { keys[name] ?? "" }

    func bundle(_ arguments: String...) throws -> CommandBed.Outcome {
        try CommandBed.run(
            [CommandBed.executable, "bundle"] + arguments, in: bed.directory, environment: bed.environment)
    }

    func sign(_ role: String, _ names: String...) throws {
        for name in names {
            expectDone(try bundle("sign", "policy.bundle", "--role", role, "--key-file", "\(name).pem"))
        }
    }

    /// Makes a bundle of pins.yaml, with a timestamp, signed by all.
    func publish() throws {
        expectDone(try bundle("create", "policy.bundle", "--pins", "pins.yaml", "--expires", "90d"))
        try sign("bundle", "alice", "bob")
        expectDone(try bundle("timestamp", "policy.bundle", "--expires", "7d"))
        try sign("timestamp", "job")
    }

    func verify(_ more: String..., file: String = "policy.bundle") throws -> CommandBed.Outcome {
        try CommandBed.run(
            [
                CommandBed.executable, "bundle", "verify", file, "--key", key("root-1"), "--key", key("root-2"),
                "--threshold", "2",
            ] + more,
            in: bed.directory, environment: bed.environment)
    }

    func openssl(_ arguments: String...) throws -> CommandBed.Outcome {
        // Only the owner may read keys.
        try CommandBed.run(
            ["/bin/sh", "-c", "umask 077; exec /usr/bin/openssl \"$@\"", "openssl"] + arguments, in: bed.directory,
            environment: bed.environment)
    }

    /// Makes certificates to pin.
    func makeCertificate(_ name: String) throws {
        let outcome = try openssl(
            "req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", "\(name).key", "-out", name, "-subj",
            "/CN=a.test")
        #expect(outcome.code == 0, "\(outcome.errors)")
    }

    func copy(_ name: String, to other: String) throws {
        try FileManager.default.copyItem(atPath: bed.path(name), toPath: bed.path(other))
    }

    func expectDone(_ outcome: CommandBed.Outcome, location: SourceLocation = #_sourceLocation) {
        #expect(outcome.code == 0, "\(outcome.errors)", sourceLocation: location)
    }
}
