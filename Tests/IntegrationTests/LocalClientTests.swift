import Foundation
import Testing

/// Who a client is, as the kernel says, and the `clients` of an entry, which decide by it. Programs of other users are
/// started with setpriv(1), which needs root.
@Suite(.enabled(if: geteuid() == 0, "programs of other users are started"), .timeLimit(.minutes(5)))
struct LocalClientTests {
    /// A user that every Debian has, with nothing else here.
    private static let other = ["setpriv", "--reuid=1", "--regid=1", "--clear-groups"]

    private static func entry(_ clients: String, _ more: String = "") -> String {
        "hosts: [{match: \(OriginBed.name), clients: {\(clients)}\(more)}]\n"
    }

    private func get(_ shared: SharedBed, as launcher: [String] = [], _ path: String = "/echo") async throws -> Run {
        try await shared.bed.run(
            launcher + ["curl", "-sS", "-w", "\n%{http_code}", shared.plainURL + path],
            environment: shared.proxy.clientEnvironment)
    }

    // MARK: Access

    @Test func usersAreToldApart() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, pins: Self.entry("users: [daemon]"))
            #expect(try await get(shared, as: Self.other).output.hasSuffix("200"))
            let refused = try await get(shared)
            #expect(refused.output.hasSuffix("403"), "\(refused)")
            #expect(
                refused.output.contains("comes from root (user 0)") || refused.output.contains("comes from user 0"),
                "\(refused)")
            #expect(
                refused.output.contains("pins.yaml:1 lets only these clients use the host: users: [daemon]"),
                "\(refused)")
            // CONNECT is refused before anything is connected.
            let answer = try await shared.proxy.connect(to: shared.authority)
            #expect(answer.status == 403 && answer.reason.contains("is for other clients"), "\(answer)")
            #expect(answer["proxy-status"]?.contains("http_request_denied") == true, "\(answer)")
            #expect(try shared.proxy.openSockets(to: shared.originPort) == 0)
            let line = try await shared.proxy.events.first("exchange") { $0["status"] == "403" }
            #expect(line["client_uid"] == "0" && line["entry"] == OriginBed.name, "\(line)")
            #expect(line["cause"]?.contains("is for clients: {users: [daemon]}") == true, "\(line)")
        }
    }

    @Test func programsAreToldApart() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, pins: Self.entry("executables: [/usr/bin/curl]"))
            #expect(try await get(shared).output.hasSuffix("200"))
            // Another user's program: root can still see it.
            #expect(try await get(shared, as: Self.other).output.hasSuffix("200"))
            let answer = try await shared.proxy.connect(to: shared.authority)
            #expect(answer.status == 403, "\(answer)")
            #expect(answer.body.contains("process \(getpid()): /"), "\(answer)")
            let line = try await shared.proxy.events.first("exchange") { $0["status"] == "200" }
            #expect(line["client_exe"] == "/usr/bin/curl" && line["client_pid"] != nil, "\(line)")
        }
    }

    /// In a separate mount namespace, another program has the allowed one's name.
    @Test func aProgramInDisguiseIsUnknown() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, pins: Self.entry("executables: [/usr/bin/true]"))
            let copy = bed.path("copy")
            try FileManager.default.copyItem(atPath: "/usr/bin/curl", toPath: copy)
            let disguise = ["unshare", "-m", "sh", "-c", "mount --bind \(copy) /usr/bin/true && exec \"$@\"", "sh"]
            let run = try await bed.run(
                disguise + ["/usr/bin/true", "-sS", "-w", "%{http_code}", shared.plainURL + "/echo"],
                environment: shared.proxy.clientEnvironment)
            #expect(run.output.hasSuffix("403") && run.output.contains("an unknown program"), "\(run)")
        }
    }

    /// A child that inherited the connection could send over it too.
    @Test func allWhoHoldAConnectionMustBeAllowed() async throws {
        try await withTestBed { bed in
            let python = try FileManager.default.destinationOfSymbolicLink(atPath: "/usr/bin/python3")
            let shared = try await OriginBed.prepare(bed, pins: Self.entry("executables: [/usr/bin/\(python)]"))
            let script = """
                import os, socket, subprocess, sys
                s = socket.socket()
                held = None
                if sys.argv[1] == "shared":
                    held = subprocess.Popen(["sleep", "60"], pass_fds=[s.fileno()])
                s.connect(("127.0.0.1", \(shared.proxy.port)))
                s.sendall(b"GET \(shared.plainURL)/echo HTTP/1.1\\r\\nHost: \
                \(OriginBed.name):\(shared.secondOriginPort)\\r\\n\\r\\n")
                print(s.recv(4096).decode())
                if held: held.kill(); held.wait()
                """
            for (kind, status) in [("alone", "200"), ("shared", "403")] {
                let run = try await bed.run(["/usr/bin/python3", "-c", script, kind])
                #expect(run.output.hasPrefix("HTTP/1.1 \(status)"), "\(kind): \(run)")
            }
            let line = try await shared.proxy.events.first("exchange") { $0["status"] == "403" }
            #expect(line["client_pids"] == "2", "\(line)")
        }
    }

    @Test(.enabled(if: AddressTests.outerAddress != nil, "every address of this machine is loopback"))
    func whoIsNotOfThisMachineIsNobody() async throws {
        let outer = try #require(AddressTests.outerAddress)
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, pins: Self.entry("users: [root]"),
                sections: [
                    "proxy": ["listen: 0.0.0.0:0", "allow_clients: [127.0.0.0/8, \(outer)]"],
                    "upstream": ["allow_addresses: [loopback]"],
                ])
            let far = try await bed.run([
                "curl", "-sS", "--proxy", "http://\(outer):\(shared.proxy.port)", shared.plainURL + "/echo", "-w",
                "%{http_code}",
            ])
            #expect(far.output.hasSuffix("403") && far.output.contains("an unknown client"), "\(far)")
            #expect(try await get(shared).output.hasSuffix("200"))
        }
    }

    // MARK: A proxy without privileges

    /// As the service runs, apart from its unit: users are known, others' processes aren't.
    @Test func withoutPrivilegesUsersAreKnownAndProcessesAreNot() async throws {
        try await withTestBed { bed in
            let origin = try await PythonPeer.origin(in: bed, chain: nil)
            let launcher =
                [
                    "sh", "-c", "chown -R daemon \"$0\" && exec setpriv --reuid=1 --regid=1 --clear-groups \"$@\"",
                    bed.directory,
                ]
            let proxy = try await ProxyProcess(
                in: bed,
                pins:
                    """
                    hosts:\n  - {match: user.test, clients: {users: [root]}}\n  - {match: program.test, clients: \
                    {executables: [/usr/bin/curl]}}\n
                    """,
                trust: nil, hosts: ["user.test": "127.0.0.1", "program.test": "127.0.0.1"], launcher: launcher)
            let warning = try await proxy.events.first("config.warning") {
                $0["cause"]?.contains("CAP_SYS_PTRACE") == true
            }
            #expect(warning["cause"]?.contains("pins.yaml:3") == true, "\(warning)")
            func get(_ host: String, _ launcher: [String] = []) async throws -> Run {
                try await bed.run(
                    launcher + ["curl", "-sS", "-w", "%{http_code}", "http://\(host):\(origin.port)/echo"],
                    environment: proxy.clientEnvironment)
            }
            #expect(try await get("user.test").output.hasSuffix("200"))
            #expect(try await get("user.test", Self.other).output.hasSuffix("403"))
            let refused = try await get("program.test")
            #expect(
                refused.output.hasSuffix("403")
                    && refused.output.contains("may not look into processes of other users"), "\(refused)")
            // It can still see its own user's processes.
            #expect(try await get("program.test", Self.other).output.hasSuffix("200"))
        }
    }

    /// As with the drop-in of docs/identity.md, in a /proc that hides other users' processes, as the unit's does.
    @Test func withTwoCapabilitiesItSeesEveryProcess() async throws {
        try await withTestBed { bed in
            let origin = try await PythonPeer.origin(in: bed, chain: nil)
            let capabilities = "-all,+sys_ptrace,+dac_read_search"
            let launcher = [
                "unshare", "-m", "--propagation", "private", "sh", "-c",
                "mount -t proc -o hidepid=invisible,subset=pid proc /proc && chown -R daemon \"$0\" && exec setpriv "
                    + "--reuid=1 --regid=1 --clear-groups --inh-caps=\(capabilities) --ambient-caps=\(capabilities) "
                    + "--bounding-set=\(capabilities) \"$@\"",
                bed.directory,
            ]
            let proxy = try await ProxyProcess(
                in: bed,
                pins: "hosts: [{match: program.test, clients: {users: [root], executables: [/usr/bin/curl]}}]\n",
                trust: nil,
                hosts: ["program.test": "127.0.0.1"], launcher: launcher)
            let run = try await bed.run(
                ["curl", "-sS", "-w", "%{http_code}", "http://program.test:\(origin.port)/echo"],
                environment: proxy.clientEnvironment)
            #expect(run.output.hasSuffix("200"), "\(run)")
            #expect(!proxy.events.all("config.warning").contains { $0["cause"]?.contains("clients:") == true })
            let other = try await proxy.connect(to: "program.test:\(origin.port)")
            #expect(other.status == 403 && other.body.contains("process \(getpid()): /"), "\(other)")
        }
    }

    /// A control group with systemd's name and layout, as the kernel shows a unit.
    @Test(.enabled(if: Unit.isPossible, "control groups can't be made here"))
    func unitsAreToldApart() async throws {
        let unit = try Unit()
        defer { unit.remove() }
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, pins: Self.entry("users: [root], units: [\(unit.name)]"))
            let run = try await get(shared, as: unit.launcher)
            #expect(run.output.hasSuffix("200"), "\(run)")
            let refused = try await get(shared)
            #expect(
                refused.output.hasSuffix("403") && refused.output.contains("/usr/bin/curl, in no known unit"),
                "\(refused)")
            let line = try await shared.proxy.events.first("exchange") { $0["status"] == "200" }
            #expect(line["client_unit"] == unit.name, "\(line)")
        }
    }

    private struct Unit {
        private static let root = ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup"].first {
            access($0 + "/cgroup.procs", W_OK) == 0
        }
        static let isPossible = root != nil
        let name: String
        private let slice: String

        init() throws {
            name = "pinproxy-test-\(getpid()).service"
            slice = try #require(Self.root) + "/pinproxytest.slice"
            try FileManager.default.createDirectory(atPath: slice + "/" + name, withIntermediateDirectories: true)
        }

        var launcher: [String] { ["sh", "-c", "echo $$ > \(slice)/\(name)/cgroup.procs && exec \"$@\"", "sh"] }

        func remove() {
            rmdir(slice + "/" + name)
            rmdir(slice)
        }
    }

    // MARK: Others' connections, and reloads

    @Test func aFetchIsNotSharedWithWhomItIsNotFor() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, pins: Self.entry("users: [root]", ", session: {coalesce: true}"))
            let first = try await bed.start(
                ["curl", "-sS", shared.plainURL + "/hold/a"], environment: shared.proxy.clientEnvironment)
            _ = try await shared.plainOrigin?.events.first("held")
            let other = try await get(shared, as: Self.other, "/hold/a")
            #expect(other.output.hasSuffix("403"), "\(other)")
            _ = try await get(shared, "/release/a")
            #expect(try await first.ending() == .exited(0))
            #expect(await first.output.text == "first,second")
        }
    }

    @Test(arguments: [("users: [daemon]", true), ("users: [root]", false), ("executables: [/usr/bin/true]", true)])
    func aReloadEndsWhatItWouldNotHaveLetBegin(_ clients: String, _ ends: Bool) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, pins: "hosts: [{match: \(OriginBed.name), action: tunnel}]\n")
            let client = try await HeldClient(in: shared, trust: bed.path("roots.pem"))
            #expect(try await client.connect() == "200")
            #expect(try await client.secure() == "new")
            #expect(try await client.get("/before") == "200")
            try bed.file("proxy/pins.yaml", Self.entry(clients, ", action: tunnel"))
            #expect(try await shared.proxy.reload().name == "config.reload")
            if ends {
                let line = try await shared.proxy.events.first("exchange") { $0["cause"] != nil }
                #expect(line["cause"]?.hasPrefix("after a reload") == true, "\(line)")
            }
            #expect(try await (client.get("/after") == "200") != ends)
        }
    }

    /// A connection to the origin is shared between clients; who may use the host is not.
    @Test func anIdleConnectionGrantsNoAccess() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, pins: Self.entry("users: [root]"), sections: ["proxy": ["workers: 1"]])
            #expect(try await get(shared).output.hasSuffix("200"))
            #expect(try await get(shared, as: Self.other).output.hasSuffix("403"))
            // It survives a reload that changes nothing.
            #expect(try await shared.proxy.reload().name == "config.reload")
            #expect(try await get(shared).output.hasSuffix("200"))
            let reused = try await shared.proxy.events.first("exchange", number: 3)
            #expect(reused["reused"] == "1", "\(reused)")
        }
    }

    @Test func tasksTellWhoAsks() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await bed.start(
                Self.other + ["curl", "-sS", shared.plainURL + "/hold/b"], environment: shared.proxy.clientEnvironment)
            _ = try await shared.plainOrigin?.events.first("held")
            let tasks = TaskControl(bed: bed, proxy: shared.proxy)
            try await eventually("the process to be found") { try await tasks.list().first?.clientProcess != nil }
            let task = try #require(try await tasks.list().first)
            #expect(task.clientUser == 1 && task.clientUserName == "daemon", "\(task)")
            #expect(task.clientExecutable == "/usr/bin/curl", "\(task)")
            let shown = try await tasks.pinproxy("tasks", "show", "\(task.id)")
            #expect(shown.output.contains(": daemon, process "), "\(shown)")
            _ = try await get(shared, "/release/b")
            #expect(try await client.ending() == .exited(0))
        }
    }
}
