import Foundation
import Testing

/// Files that systemd passes to the service. The configuration names them `credential:NAME`.
@Suite(.timeLimit(.minutes(5)))
struct CredentialTests {
    private static let sections = ["authority": ["private_key: credential:authority-key"]]

    /// Writes a credential the way systemd does. An access control list lets the service's user read it, and the list's
    /// mask shows as the group's permissions.
    private func handOver(_ bed: TestBed, _ name: String, _ text: String, mode: mode_t = 0o440) throws {
        try bed.file("credentials/\(name)", text, mode: mode)
    }

    private func directory(_ bed: TestBed) -> [String: String] { ["CREDENTIALS_DIRECTORY": bed.path("credentials")] }

    @Test func theAuthoritysKeyIsTheCredential() async throws {
        try await withTestBed { bed in
            let first = try await ProxyProcess(in: bed, trust: nil)
            first.process.send(signal: SIGTERM)
            #expect(try await first.process.ending() == .exited(0))
            let key = bed.path("proxy/state/pinproxy/authority.key")
            try handOver(bed, "authority-key", try String(contentsOfFile: key, encoding: .utf8))
            try FileManager.default.removeItem(atPath: key)

            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: roots.chain("origin.test"))
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: ["origin.test": "127.0.0.1"], sections: Self.sections,
                environment: directory(bed))
            let run = try await bed.curl(
                via: proxy, ["-o", "/dev/null", "-w", "%{http_code}", "https://origin.test:\(origin.port)/echo"])
            #expect(run.output == "200", "\(run)")
            #expect(proxy.events.all("authority.created").isEmpty)
            #expect(!FileManager.default.fileExists(atPath: key))
        }
    }

    private func failedStart(
        _ bed: TestBed, pins: String = "hosts: []\n", sections: ProxyProcess.Sections = sections
    ) async throws -> Run {
        try ProxyProcess.write(to: bed, folder: "proxy", pins: pins, trust: nil, sections: sections)
        let run = try await bed.run(
            [ProxyProcess.executable, "run", "--config", bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: bed).merging(directory(bed)) { $1 })
        #expect(run.ending == .exited(78), "\(run)")
        return run
    }

    /// A missing credential is not replaced by a new key, there or in the state directory.
    @Test func oneThatIsNotHandedOverIsNamed() async throws {
        try await withTestBed { bed in
            let run = try await failedStart(bed)
            #expect(
                run.errors.contains(
                    "systemd has handed over no credential \"authority-key\"; write LoadCredential=authority-key:FILE "
                        + "into the [Service] section of the unit (systemctl edit pinproxy), and restart it"), "\(run)")
            #expect(!FileManager.default.fileExists(atPath: bed.path("credentials")))
            #expect(!FileManager.default.fileExists(atPath: bed.path("proxy/state/pinproxy/authority.pem")))
        }
    }

    @Test func oneThatOthersCanReadIsRefused() async throws {
        try await withTestBed { bed in
            try handOver(bed, "authority-key", "secret", mode: 0o444)
            let run = try await failedStart(bed)
            #expect(run.errors.contains("/credentials/authority-key is open to other users (mode 444)"), "\(run)")
        }
    }

    /// Only systemd uses the access control list. In any other file these permissions let a group read it.
    @Test func otherFilesStayClosedToTheGroup() async throws {
        try await withTestBed { bed in
            try bed.file("proxy/ca.key", "secret", mode: 0o440)
            let run = try await failedStart(bed, sections: ["authority": ["private_key: \(bed.path("proxy/ca.key"))"]])
            #expect(run.errors.contains("ca.key is open to other users (mode 440)"), "\(run)")
        }
    }

    @Test(arguments: ["", "..", "a/b", "a:b"])
    func whatIsNotANameIsRefused(_ name: String) async throws {
        try await withTestBed { bed in
            let run = try await failedStart(bed, sections: ["authority": ["private_key: \"credential:\(name)\""]])
            #expect(run.errors.contains("\"\(name)\" is not a credential's name"), "\(run)")
        }
    }

    /// Each setting that takes a secret's path accepts a credential, and the password is not repeated.
    @Test func aPasswordIsTheCredential() async throws {
        try await withTestBed { bed in
            let pins = """
                hosts:
                  - match: api.test
                    request: {authorization: {user: build, password_file: credential:build}}

                """
            let missing = try await failedStart(bed, pins: pins, sections: [:])
            #expect(missing.errors.contains("no credential \"build\""), "\(missing)")
            try handOver(bed, "build", "open sesame\n")
            let proxy = try await ProxyProcess(in: bed, pins: pins, trust: nil, environment: directory(bed))
            #expect(!proxy.process.output.lines.contains { $0.contains("sesame") })
        }
    }
}
