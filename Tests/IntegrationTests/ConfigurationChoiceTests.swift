import Foundation
import Testing

/// Commands away from the configuration's directory, and beside files that have changed.
@Suite(.timeLimit(.minutes(5)))
struct ConfigurationChoiceTests {
    private static let wrong = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    /// With /etc/pinproxy the order is another.
    private static let isServiceMissing = !FileManager.default.fileExists(atPath: "/etc/pinproxy/pinproxy.yaml")

    /// A command in a directory, without --config.
    private func command(_ bed: TestBed, in folder: String, _ arguments: String...) async throws -> Run {
        try await bed.run(
            ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", folder, ProxyProcess.executable] + arguments,
            environment: ProxyProcess.environment(in: bed))
    }

    private func foreign(_ bed: TestBed) throws -> String {
        try bed.file("elsewhere/config/pinproxy.yaml", "proxy: {listen: 127.0.0.1:1}\npins: null\n")
        return bed.path("elsewhere")
    }

    @Test func theRunningProxysConfigurationIsTakenAnywhere() async throws {
        try await withTestBed { bed in
            let port = try ReservedPort()
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts: [{match: denied.test, action: deny}]\n", trust: nil,
                sections: ["proxy": ["listen: 127.0.0.1:\(port.number)"]])
            let file = bed.path("proxy/pinproxy.yaml")
            let check = try await command(bed, in: "/", "check")
            #expect(check.succeeded && check.output.contains(file), "\(check)")
            #expect(
                try await command(bed, in: "/", "explain", "denied.test").output.hasPrefix(
                    "Refused: a client gets 403"))
            for name in ["status", "reload", "tasks"] {
                #expect(try await command(bed, in: "/", name).succeeded, "\(name)")
            }
            // In a directory with another one, the running proxy's is used, and a line says so.
            let folder = try foreign(bed)
            let env = try await command(bed, in: folder, "env")
            #expect(env.succeeded && env.output.contains("http_proxy='\(proxy.url)'"), "\(env)")
            let remark =
                """
                pinproxy: using \(file), which the running proxy (process \(proxy.process.identifier)) reads, and not \
                config/pinproxy.yaml
                """
            #expect(env.errors.hasPrefix(remark), "\(env)")
            // The directory's own configuration needs no such line.
            let own = try await command(bed, in: folder, "check", "--config", "config/pinproxy.yaml")
            #expect(
                own.succeeded && own.output.hasPrefix("config/pinproxy.yaml:") && !own.errors.contains("using"),
                "\(own)")
            try FileManager.default.createSymbolicLink(
                atPath: bed.path("config"), withDestinationPath: bed.path("proxy"))
            #expect(try await command(bed, in: bed.directory, "env").errors == "")
        }
    }

    @Test(.enabled(if: isServiceMissing, "a pinproxy of this machine would be found"))
    func withoutAProxyItIsTheDirectorys() async throws {
        try await withTestBed { bed in
            let check = try await command(bed, in: foreign(bed), "check")
            #expect(check.succeeded && check.output.hasPrefix("config/pinproxy.yaml: "), "\(check)")
            let none = try await command(bed, in: "/", "check")
            #expect(
                none.ending == .exited(78)
                    && none.errors.contains("there is no configuration: no proxy of this user is running, and neither"),
                "\(none)")
        }
    }

    /// A proxy without a control socket prevents nothing, and a line says so.
    @Test(.enabled(if: isServiceMissing, "a pinproxy of this machine would be found"))
    func aProxyThatCannotBeAskedIsToldOf() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            try FileManager.default.removeItem(atPath: bed.path("proxy/state/pinproxy/control.sock"))
            let check = try await command(bed, in: foreign(bed), "check")
            #expect(check.succeeded && check.output.hasPrefix("config/pinproxy.yaml: "), "\(check)")
            #expect(
                check.errors.hasPrefix(
                    """
                    pinproxy: using config/pinproxy.yaml: which file the running proxy reads can't be found out: \
                    process\u{20}
                    """
                ), "\(check)")
            withExtendedLifetime(proxy) {}
        }
    }

    /// The case of the issue: a corrected pin that isn't in force yet.
    @Test func changedFilesAreToldOfUntilTheReload() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, pins: "hosts: [{match: a.test, action: deny}]\n", trust: nil)
            func all() async throws -> [Run] {
                [
                    try await command(bed, in: "/", "explain", "a.test", "--chain", bed.path("none.pem")),
                    try await command(bed, in: "/", "lint", "--offline"), try await command(bed, in: "/", "status"),
                ]
            }
            let words = "run pinproxy reload"
            for run in try await all() { #expect(!(run.output + run.errors).contains(words), "\(run)") }
            try bed.file("proxy/pins.yaml", "hosts: [{match: a.test, action: tunnel}]\n")
            for run in try await all() {
                #expect(
                    (run.output + run.errors).contains(words)
                        && (run.output + run.errors).contains(bed.path("proxy/pins.yaml")), "\(run)")
            }
            let json = try await command(bed, in: "/", "status", "--json")
            #expect(json.output.contains("\"changed_files\""), "\(json)")
            // The files say tunnel, and the proxy denies.
            let live = try await command(bed, in: "/", "explain", "a.test", "--live")
            #expect(
                live.ending == .exited(1)
                    && live.output.hasPrefix("Refused: a client gets 403 a.test:443 denied by policy"), "\(live)")
            #expect(!live.errors.contains(words), "\(live)")
            try await proxy.reload()
            for run in try await all() { #expect(!(run.output + run.errors).contains(words), "\(run)") }
            #expect(
                try await command(bed, in: "/", "explain", "a.test", "--live").output.contains("action    tunnel: "))
        }
    }

    @Test func whatIsInForceIsKnownOnlyOfARunningProxyThatKeepsIt() async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil)
            let none = try await command(
                bed, in: "/", "explain", "a.test", "--live", "--config", bed.path("proxy/pinproxy.yaml"))
            #expect(
                none.ending == .exited(1) && none.errors.contains("no proxy is running with the state directory"),
                "\(none)")
            let process = try await bed.start(
                [ProxyProcess.executable, "run", "--no-fallback", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed), mergingErrors: true)
            _ = try await EventLog(lines: process.output).first("proxy.ready")
            let live = try await command(bed, in: "/", "explain", "a.test", "--live")
            #expect(
                live.ending == .exited(1) && live.errors.contains("keeps no copy of its active configuration")
                    && live.output.isEmpty, "\(live)")
            let other = try await command(
                bed, in: foreign(bed), "explain", "a.test", "--live", "--config", "config/pinproxy.yaml")
            #expect(other.ending == .exited(1) && other.errors.contains("and not config/pinproxy.yaml"), "\(other)")
        }
    }

    /// The list of files is for the proxy's user and root alone.
    @Test func theAdminPortDoesNotListFiles() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: AdminClient.section)
            let admin = try #require(try await proxy.events.first("proxy.ready")["admin"])
            let run = try await bed.run(["curl", "-sS", "-w", " %{http_code}", "http://\(admin)/files"])
            #expect(run.output.hasSuffix(" 403"), "\(run)")
        }
    }
}
