import Foundation
import PinproxyTestAuthority
import Testing

/// Programs that make namespaces of several users, run by an ordinary user with `--isolated`.
@Suite(.enabled(if: IsolationBed.isNestableForUsers, "needs root, buildah and uidmap"), .timeLimit(.minutes(5)))
struct ExecNamespacesTests {
    /// Gives nobody other subordinate IDs, visible to later processes of this test alone.
    private func withNumbers(_ bed: TestBed) throws -> [String] {
        let file = try bed.file("numbers", "nobody:200000:65536\n", mode: 0o644)
        let script = "for name in subuid subgid; do mount --bind \"$0\" /etc/$name; done; exec \"$@\""
        return ["unshare", "--mount", "sh", "-ec", script, file] + IsolationBed.asNobody
    }

    private func prepare(_ bed: TestBed) async throws -> (registry: PythonPeer, environment: [String: String]) {
        _ = try await ExecRefusalBed.prepare(bed)
        let registry = try await PythonPeer(
            in: bed, script: "registry.py", ["--certificate", bed.path("origin.pem"), "--key", bed.path("origin.key")])
        var environment = try IsolationBed.openToUsers(bed)
        // All that it keeps goes with the bed.
        for name in ["XDG_RUNTIME_DIR", "TMPDIR"] { environment[name] = environment["HOME"] }
        environment["STORAGE_DRIVER"] = "vfs"
        return (registry, environment)
    }

    /// Its image has a file of another user, which only a namespace of several users can hold.
    @Test(arguments: ["--isolated", "--transparent"])
    func buildahPullsWithTheRightPinAlone(option: String) async throws {
        try await withTestBed { bed in
            let (registry, environment) = try await prepare(bed)
            let options = [option, "--state-directory", bed.path("proxy/state/pinproxy")]
            func buildah(_ arguments: String..., launcher: [String]) async throws -> Run {
                try await bed.run(
                    launcher + bed.execArguments(options, ["buildah"] + arguments), environment: environment)
            }
            let launcher = try withNumbers(bed)
            func image(_ host: String) -> String { "docker://\(host):\(registry.port)/pinproxy/test:latest" }
            let right = try await buildah("pull", "-q", image("right.test"), launcher: launcher)
            #expect(right.succeeded && right.told.isEmpty, "\(right)")
            let map = try await buildah("unshare", "cat", "/proc/self/uid_map", launcher: launcher)
            #expect(map.output.split { $0.isWhitespace } == ["0", "65534", "1", "1", "200000", "65536"], "\(map)")
            let wrong = try await buildah("pull", "-q", image("wrong.test"), launcher: launcher)
            #expect(!wrong.succeeded, "\(wrong)")
            #expect(wrong.told.contains { $0.contains("Certificate pinning failure for wrong.test") }, "\(wrong)")
            // Without subordinate numbers the message says what is missing.
            let poor = try await buildah("unshare", "true", launcher: IsolationBed.asNobody)
            #expect(poor.told.contains { $0.contains("/etc/subuid") }, "\(poor)")
        }
    }

    /// What newuidmap needs is for such commands alone.
    @Test func otherCommandsHaveNoCapabilities() async throws {
        try await withTestBed { bed in
            let (_, environment) = try await prepare(bed)
            let options = [
                "--isolated", "--explain-refusals=off", "--state-directory", bed.path("proxy/state/pinproxy"),
            ]
            let status = try await bed.run(
                withNumbers(bed) + bed.execArguments(options, ["grep", "-h", "CapAmb", "/proc/self/status"]),
                environment: environment)
            #expect(status.output == "CapAmb:\t0000000000000000", "\(status)")
        }
    }
}
