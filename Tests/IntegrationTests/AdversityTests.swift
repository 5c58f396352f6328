import Foundation
import Testing

/// A machine that lacks something: the proxy names it in one line, and continues if it can.
@Suite(.timeLimit(.minutes(5)))
struct AdversityTests {
    private static func shell(_ script: String) -> [String] { ["/bin/sh", "-c", script + " && exec \"$@\"", "sh"] }

    private static func state(_ bed: TestBed) -> String { bed.path("proxy/state/pinproxy") }

    private static let hosts = ["origin.test": "127.0.0.1"]

    /// An origin, and its roots for `upstream.trust`.
    private func origin(_ bed: TestBed) async throws -> (peer: PythonPeer, roots: String) {
        let roots = try TestRoots()
        return (try await PythonPeer.origin(in: bed, chain: roots.chain("origin.test")), try roots.write(to: bed))
    }

    /// Runs a proxy once with the state directory.
    private func visit(_ bed: TestBed) async throws {
        let first = try await ProxyProcess(in: bed, trust: nil)
        first.process.send(signal: SIGTERM)
        #expect(try await first.process.ending() == .exited(0))
    }

    /// Checks that a client that trusts the authority is served.
    private func expectService(_ bed: TestBed, _ proxy: ProxyProcess, _ origin: PythonPeer) async throws {
        let run = try await bed.curl(
            via: proxy, ["-o", "/dev/null", "-w", "%{http_code}", "https://origin.test:\(origin.port)/echo"])
        #expect(run.output == "200", "\(run)")
    }

    /// A start only needs an authority that it can read.
    @Test(
        .enabled(if: NetworkBed.isAvailable, "needs root, to mount"),
        arguments: [
            ("mount --bind \"$STATE\" \"$STATE\" && mount -o remount,ro,bind \"$STATE\"", "Read-only file system"),
            (
                """
                rm \"$STATE/pinproxy.pid\" && mount --bind \"$STATE\" \"$STATE\" && mount -o remount,ro,bind \"$STATE\"
                """,
                "Read-only file system"
            ),
            (
                "cp -a \"$STATE\" \"$STATE.copy\" && mount -t tmpfs -o size=64k none \"$STATE\""
                    + " && cp -a \"$STATE.copy/.\" \"$STATE\" && rm \"$STATE/pinproxy.pid\""
                    + " && { cat /dev/zero > \"$STATE/full\" 2>/dev/null; true; }", "No space left on device"
            ),
        ])
    func aStateDirectoryThatCannotBeWrittenIsNoReasonNotToServe(_ breaking: String, _ reason: String) async throws {
        try await withTestBed { bed in
            try await visit(bed)
            let (origin, roots) = try await origin(bed)
            let proxy = try await ProxyProcess(
                in: bed, trust: roots, hosts: Self.hosts, environment: ["STATE": Self.state(bed)],
                launcher: ["unshare", "--mount"] + Self.shell(breaking))
            let said = try await proxy.events.first("state.unwritable")
            #expect(said["file"] == Self.state(bed) + "/pinproxy.pid" && said["cause"] == reason, "\(said)")
            #expect(said["effect"]?.hasPrefix("the proxy serves without it") == true, "\(said)")
            try await expectService(bed, proxy, origin)
            #expect(try await proxy.reload().name == "config.reload")
            proxy.process.send(signal: SIGTERM)
            #expect(try await proxy.process.ending() == .exited(0))
        }
    }

    /// The file with the previous process's number has room for this one's.
    @Test(.enabled(if: NetworkBed.isAvailable, "needs root, to mount"))
    func aFullDiskIsNoReasonNotToBeFound() async throws {
        try await withTestBed { bed in
            try await visit(bed)
            let state = Self.state(bed)
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, environment: ["STATE": state],
                launcher: ["unshare", "--mount"]
                    + Self.shell(
                        "cp -a \"$STATE\" \"$STATE.copy\" && mount -t tmpfs -o size=64k none \"$STATE\""
                            + " && cp -a \"$STATE.copy/.\" \"$STATE\" && { cat /dev/zero > \"$STATE/full\" "
                            + "2>/dev/null; true; }"
                    ))
            let status = try await bed.run(
                ["nsenter", "--mount=/proc/\(proxy.process.identifier)/ns/mnt", ProxyProcess.executable, "status"],
                environment: ProxyProcess.environment(in: bed))
            #expect(status.output.hasPrefix("running: process \(proxy.process.identifier)"), "\(status)")
        }
    }

    /// Without a writable state directory a first start fails: it can't save its authority.
    @Test(.enabled(if: NetworkBed.isAvailable, "needs root, to mount"))
    func aFirstStartNeedsAStateDirectory() async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil)
            try bed.file("proxy/state/pinproxy/empty", "")
            let run = try await bed.run(
                ["unshare", "--mount"]
                    + Self.shell("mount --bind \"$STATE\" \"$STATE\" && mount -o remount,ro,bind \"$STATE\"")
                    + [ProxyProcess.executable, "run", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed).merging(["STATE": Self.state(bed)]) { $1 })
            #expect(run.ending == .exited(1), "\(run)")
            #expect(run.errors.contains("authority.key can't be written: Read-only file system"), "\(run)")
        }
    }

    /// Either fewer descriptors than the proxy itself needs, or enough for one client at a time.
    @Test(arguments: [20, 32])
    func fewDescriptorsAreNamed(_ count: Int) async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil)
            let process = try await bed.start(
                [
                    "prlimit", "--nofile=\(count):\(count)", "--", ProxyProcess.executable, "run", "--config",
                    bed.path("proxy/pinproxy.yaml"),
                ],
                environment: ProxyProcess.environment(in: bed), mergingErrors: true)
            try await eventually("a word about it") {
                process.output.lines.contains { $0.contains("LimitNOFILE") && $0.contains("\(count)") }
            }
        }
    }

    /// The process itself is one thread, the log has the second, a worker the third.
    @Test(.enabled(if: getuid() == 0, "needs root, to become another user"), arguments: [1, 2])
    func tooFewThreadsAreNamed(_ count: Int) async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil)
            let state = bed.path("proxy/state")
            try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
            for path in [bed.directory, bed.path("proxy")] { chmod(path, 0o755) }
            for file in ["pinproxy.yaml", "pins.yaml"] { chmod(bed.path("proxy/\(file)"), 0o644) }
            // The limit counts all that a user has: one without other processes.
            let user = 54_320 + count
            chown(state, uid_t(user), gid_t(user))
            let run = try await bed.run(
                [
                    "setpriv", "--reuid", "\(user)", "--regid", "\(user)", "--clear-groups", "prlimit",
                    "--nproc=\(count):\(count)",
                    "--", ProxyProcess.executable, "run", "--config", bed.path("proxy/pinproxy.yaml"),
                ],
                environment: ProxyProcess.environment(in: bed))
            #expect(run.ending == .exited(1), "\(run)")
            #expect(run.errors.contains("pthread_create: Resource temporarily unavailable: raise TasksMax="), "\(run)")
            #expect(run.errors.contains("the log can't be written") == (count == 1), "\(run)")
        }
    }

    @Test(.enabled(if: NetworkBed.isAvailable, "needs root, to mount"))
    func withoutAResolverTheHostsFileIsThere() async throws {
        try await withTestBed { bed in
            let (origin, roots) = try await origin(bed)
            let proxy = try await ProxyProcess(
                in: bed, trust: roots, hosts: Self.hosts,
                launcher: ["unshare", "--mount"] + Self.shell("mount --bind /dev/null /etc/resolv.conf"))
            try await expectService(bed, proxy, origin)
            let answer = try await proxy.connect(to: "unknown.test:443")
            #expect([502, 504].contains(answer.status), "\(answer)")
            #expect(answer["Proxy-Status"]?.contains("dns_") == true, "\(answer)")
        }
    }

    @Test(.enabled(if: NetworkBed.isAvailable, "needs root, to make a network namespace"))
    func withoutIPv6OnlyItsAddressesAreMissed() async throws {
        try await withTestBed { bed in
            let without =
                ["unshare", "--net", "--mount"]
                + Self.shell("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && ip link set lo up")
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, hosts: ["both.test": "::1 both.test\n127.0.0.1"], launcher: without)
            let beside = ["nsenter", "--net=/proc/\(proxy.process.identifier)/ns/net"]
            let origin = try await PythonPeer.origin(in: bed, chain: nil, launcher: beside)
            let run = try await bed.run(
                beside + [
                    "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "http://both.test:\(origin.port)/echo",
                ],
                environment: proxy.clientEnvironment)
            #expect(run.output == "200", "\(run)")

            try ProxyProcess.write(
                to: bed, folder: "other", pins: "hosts: []\n", trust: nil, sections: ["proxy": ["listen: \"[::1]:0\""]])
            let other = try await bed.run(
                beside + [ProxyProcess.executable, "run", "--config", bed.path("other/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed, folder: "other"))
            #expect(other.ending == .exited(1), "\(other)")
            #expect(other.errors.contains("::1 is not an address of this machine"), "\(other)")
        }
    }
}
