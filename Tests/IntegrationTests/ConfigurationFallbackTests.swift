import Foundation
import Testing

/// A start with a refused configuration uses the last one in force.
@Suite(.timeLimit(.minutes(5)))
struct ConfigurationFallbackTests {
    private static let broken = "hosts: 1\n"
    private static let kept = "proxy/state/pinproxy/configuration.json"
    private static let pinned = """
        hosts:
          - match: \(OriginBed.name)
            pinning: public-key
            pins: [\(String.wrongPin)]

        """

    /// With a file that is a secret.
    private static let secret = """
        hosts:
          - match: secret.test
            session: {credentials: {user: u, password_file: password}}

        """

    /// The same files, but for the pin file.
    private func start(_ shared: SharedBed, pins: String, launcher: [String] = []) async throws -> ProxyProcess {
        try await ProxyProcess(
            in: shared.bed, pins: pins, trust: shared.bed.path("roots.pem"), hosts: [OriginBed.name: "127.0.0.1"],
            sections: ["admin": ["listen: 127.0.0.1:0"]], launcher: launcher)
    }

    /// A proxy that has served with `pinned` and exited.
    private func ended(_ bed: TestBed) async throws -> SharedBed {
        let shared = try await OriginBed.prepare(bed, pins: Self.pinned, sections: ["admin": ["listen: 127.0.0.1:0"]])
        await shared.proxy.process.stop()
        return shared
    }

    private func run(_ bed: TestBed, _ flags: String..., config: String = "proxy/pinproxy.yaml") async throws -> Run {
        try await bed.run(
            [ProxyProcess.executable, "run", "--config", bed.path(config)] + flags,
            environment: ProxyProcess.environment(in: bed))
    }

    @Test func theLastConfigurationServesAndSaysSo() async throws {
        try await withTestBed { bed in
            let shared = try await ended(bed)
            let proxy = try await start(shared, pins: Self.broken)
            let event = try await proxy.events.first("config.fallback")
            #expect(event["level"] == "error", "\(event)")
            let error = try await proxy.events.first("config.error")
            #expect(error["cause"]?.contains("proxy/pins.yaml:1:") == true, "\(error)")
            // The pins still apply.
            #expect(try await proxy.connect(to: shared.authority).status == 502)
            _ = try await proxy.events.first("pin.mismatch")

            let admin = try #require(try await proxy.events.first("proxy.ready")["admin"])
            func asked(_ resource: String) async throws -> String {
                try await bed.run(["curl", "-sS", "-i", "http://\(admin)\(resource)"]).output
            }
            let readiness = try await asked("/readyz")
            for part in [" 200 ", "\"fallback\":", "pins.yaml:1:"] { #expect(readiness.contains(part), "\(readiness)") }
            #expect(try await asked("/metrics").contains("\npinproxy_config_fallback 1\n"))
            let status = try await bed.run(
                [ProxyProcess.executable, "status", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(status.output.contains("WARNING: the configuration was refused at the start"), "\(status)")

            // A refused reload keeps this state; an accepted one ends it.
            #expect(try await proxy.reload().name == "config.error")
            #expect(try await asked("/metrics").contains("\npinproxy_config_fallback 1\n"))
            try bed.file("proxy/pins.yaml", "hosts: []\n")
            #expect(try await proxy.reload().name == "config.reload")
            _ = try await proxy.events.first("config.fallback") { $0["effect"] == "over" }
            #expect(try await asked("/metrics").contains("\npinproxy_config_fallback 0\n"))
            #expect(!(try await asked("/readyz").contains("fallback")))
            #expect(try await proxy.connect(to: shared.authority).status == 200)
            #expect(proxy.events.all("state.unwritable").isEmpty)
        }
    }

    /// Also a configuration applied by a reload.
    @Test func itIsTheLastOneThatWasInForce() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            try bed.file("proxy/pins.yaml", Self.pinned)
            #expect(try await shared.proxy.reload().name == "config.reload")
            try bed.file("proxy/pins.yaml", Self.broken)
            #expect(try await shared.proxy.reload().name == "config.error")
            shared.proxy.process.send(signal: SIGKILL)
            _ = try await shared.proxy.process.ending()
            let proxy = try await start(shared, pins: Self.broken)
            #expect(try await proxy.connect(to: shared.authority).status == 502)
            // It stays the last one for another such start.
            await proxy.process.stop()
            let next = try await start(shared, pins: Self.broken)
            #expect(try await next.connect(to: shared.authority).status == 502)
        }
    }

    /// The copy has the trust anchors too, and is for its owner alone.
    @Test func filesThatAreNamedAreKeptAndSecretsAreNot() async throws {
        try await withTestBed { bed in
            try bed.file("proxy/password", "hunter2-of-the-parent\n")
            let shared = try await OriginBed.prepare(bed, pins: Self.secret)
            await shared.proxy.process.stop()
            let attributes = try FileManager.default.attributesOfItem(atPath: bed.path(Self.kept))
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            let text = try bed.contents(Self.kept)
            #expect(text.contains(Data(Self.secret.utf8).base64EncodedString()))
            #expect(!text.contains(Data("hunter2-of-the-parent".utf8).base64EncodedString().prefix(20)))
            #expect(!text.contains("/password\""))
            #expect(text.contains("roots.pem"))

            try FileManager.default.removeItem(atPath: bed.path("roots.pem"))
            let proxy = try await ProxyProcess(in: bed, trust: bed.path("roots.pem"))
            _ = try await proxy.events.first("config.fallback")
        }
    }

    @Test func aFirstStartFailsAsBefore() async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: Self.broken, trust: nil)
            let run = try await run(bed)
            #expect(run.ending == .exited(78) && run.errors.contains("pins.yaml:1:"), "\(run)")
            #expect(!run.errors.contains("last in force"), "\(run)")
        }
    }

    /// A removed configuration is not a refused one.
    @Test func withoutAConfigurationNothingStarts() async throws {
        try await withTestBed { bed in
            _ = try await ended(bed)
            try FileManager.default.removeItem(atPath: bed.path("proxy/pinproxy.yaml"))
            let run = try await run(bed)
            #expect(run.ending == .exited(78) && run.errors.contains("No such file"), "\(run)")
        }
    }

    @Test func anAdministratorCanForbidIt() async throws {
        try await withTestBed { bed in
            _ = try await ended(bed)
            try bed.file("proxy/pins.yaml", Self.broken)
            for flags in [["--no-fallback"], ["--no-fallback", "--handover"]] {
                let run = try await bed.run(
                    [ProxyProcess.executable, "run", "--config", bed.path("proxy/pinproxy.yaml")] + flags,
                    environment: ProxyProcess.environment(in: bed))
                #expect(run.ending == .exited(78), "\(run)")
            }
            // No copy is left for a start to use.
            #expect(!FileManager.default.fileExists(atPath: bed.path(Self.kept)))
            #expect(try await run(bed).ending == .exited(78))
        }
    }

    /// A bad copy is never used, not even in part.
    @Test(arguments: [
        ("truncated", "is not in the form"), ("empty", "is not in the form"), ("damaged", "is damaged"),
        ("another form", "that this version doesn't know"), ("another's", "is of another configuration"),
        ("writable by others", "can be written by others"), ("a link", "symbolic link"),
        ("refused too", "is refused too"),
    ])
    func aCopyThatCannotBeUsedIsNamed(_ defect: String, _ cause: String) async throws {
        try await withTestBed { bed in
            let shared = try await ended(bed)
            try bed.file("proxy/pins.yaml", Self.broken)
            let text = try bed.contents(Self.kept)
            var config = "proxy/pinproxy.yaml"
            switch defect {
            case "truncated": try bed.file(Self.kept, String(text.prefix(text.count / 2)))
            case "empty": try bed.file(Self.kept, "")
            case "damaged":
                let other = Self.pinned.replacingOccurrences(of: OriginBed.name, with: "nobody.test")
                let (good, bad) = (Data(Self.pinned.utf8).base64EncodedString(), Data(other.utf8).base64EncodedString())
                #expect(text.contains(good))
                try bed.file(Self.kept, text.replacingOccurrences(of: good, with: bad))
            case "another form":
                try bed.file(Self.kept, text.replacingOccurrences(of: "\"format\" : 1", with: "\"format\" : 0"))
            case "another's":
                config = "proxy/other.yaml"
                try bed.file(config, bed.contents("proxy/pinproxy.yaml"))
            case "writable by others": try bed.file(Self.kept, text, mode: 0o666)
            case "a link":
                try bed.file("elsewhere", text)
                try FileManager.default.removeItem(atPath: bed.path(Self.kept))
                try FileManager.default.createSymbolicLink(
                    atPath: bed.path(Self.kept), withDestinationPath: bed.path("elsewhere"))
            default:
                // A kept configuration that is refused: its secret, which isn't kept, is missing.
                try bed.file("proxy/password", "one\n")
                let proxy = try await start(shared, pins: Self.secret)
                await proxy.process.stop()
                try FileManager.default.removeItem(atPath: bed.path("proxy/password"))
                try bed.file("proxy/pins.yaml", Self.broken)
            }
            let run = try await run(bed, config: config)
            #expect(run.ending == .exited(78) && run.errors.contains(cause), "\(run)")
            // The errors of the files come first.
            #expect(run.errors.contains(": error: "), "\(run)")
            withExtendedLifetime(shared) {}
        }
    }

    /// A copy that can't be replaced is older than what is in force: it must not come back.
    @Test func aCopyThatCannotBeReplacedIsRemoved() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            // One file more than is kept.
            let pins = (0...256).map { number in
                "  - match: h\(number).test\n    pinning: certificate\n    pins: [{file: ../roots-\(number).pem}]\n"
            }
            let root = try bed.contents("roots.pem")
            for number in 0...256 { try bed.file("roots-\(number).pem", root) }
            try bed.file("proxy/pins.yaml", "hosts:\n" + pins.joined())
            #expect(try await shared.proxy.reload().name == "config.reload")
            let said = try await shared.proxy.events.first("state.unwritable")
            #expect(said["cause"]?.contains("more than 256 files") == true, "\(said)")
            #expect(!FileManager.default.fileExists(atPath: bed.path(Self.kept)))
        }
    }

    @Test(.enabled(if: NetworkBed.isAvailable, "needs root, to mount"))
    func aStateDirectoryThatCannotBeWrittenIsReadAllTheSame() async throws {
        try await withTestBed { bed in
            let shared = try await ended(bed)
            let state = bed.path("proxy/state/pinproxy")
            let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\""
            let proxy = try await start(
                shared, pins: Self.broken, launcher: ["unshare", "--mount", "/bin/sh", "-c", script, state])
            _ = try await proxy.events.first("config.fallback")
            #expect(try await proxy.connect(to: shared.authority).status == 502)
        }
    }
}
