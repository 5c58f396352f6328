import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy exec --isolated`: only the proxy can be reached, and the command notices nothing else.
@Suite(
    .sharedBed(ExecRefusalBed.prepare), .enabled(if: IsolationBed.isAvailable, "needs network namespaces"),
    .timeLimit(.minutes(5)))
struct ExecIsolatedTests {
    let shared: SharedBed
    var bed: TestBed { shared.bed }

    init() throws {
        shared = try sharedBed()
    }

    private func url(_ host: String) -> String { "https://\(host):\(shared.originPort)/large/3" }

    private func exec(
        options: [String] = [], environment: [String: String] = [:], _ command: String...
    ) async throws -> Run {
        try await bed.run(
            bed.execArguments(["--isolated"] + options, command),
            environment: ProxyProcess.environment(in: bed).merging(environment) { $1 })
    }

    private func start(_ command: String...) async throws -> ChildProcess {
        // Under another name: the bed takes a process named pinproxy for a proxy.
        try await bed.start(
            ["env"] + bed.execArguments(["--isolated", "--explain-refusals=off"], command),
            environment: ProxyProcess.environment(in: bed))
    }

    @Test func theProxyIsReachedAsEver() async throws {
        let right = try await exec("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url("right.test"))
        #expect(right.succeeded && right.output == "200" && right.errors.isEmpty, "\(right)")
        let wrong = try await exec("curl", "-sS", url("wrong.test"))
        #expect(wrong.ending == .exited(56), "\(wrong)")
        #expect(
            wrong.told.count == 1 && wrong.told[0].contains("Certificate pinning failure for wrong.test"), "\(wrong)")
        let off = try await exec(
            options: ["--explain-refusals=off"], "sh", "-c", "echo $https_proxy; curl -sS \(url("right.test"))")
        #expect(off.succeeded && off.output.hasPrefix(shared.proxy.url + "\n") && off.errors.isEmpty, "\(off)")
    }

    /// Neither this machine's programs, nor any address, nor a name.
    @Test func nothingElseIsReached() async throws {
        let script = """
            curl -s --noproxy '*' --resolve right.test:\(shared.originPort):127.0.0.1 \(url("right.test")); echo $?
            curl -s --noproxy '*' http://192.0.2.1/; echo $?
            curl -s --noproxy '*' http://[2001:db8::1]/; echo $?
            curl -s --noproxy '*' http://unlisted.invalid/; echo $?
            """
        let run = try await exec("sh", "-c", script)
        #expect(run.output == "7\n7\n7\n6", "\(run)")
        #expect(
            run.told.count == 1
                && run.told[0].contains("or has no proxy support, so it reached nothing (--transparent"),
            "\(run)")
        let datagram =
            "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('192.0.2.1', 53))"
        #expect(try await exec(PythonPeer.python, "-c", datagram).errors.contains("Network is unreachable"))
    }

    /// The door identifies the command to the proxy, whatever credentials the command sends.
    @Test(arguments: [["--isolated"], ["--isolated", "--plain-url"], ["--isolated", "--explain-refusals=off"]])
    func theLoopbackOfThisMachineIsNotReached(options: [String]) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["listen: 127.0.0.1:\(bed.port())"]])
            let (plain, secure) = (shared.secondOriginPort, shared.originPort)
            let script = """
                unset NO_PROXY no_proxy
                ask() { for url; do curl -sk -o /dev/null -w '%{http_connect}/%{http_code} ' --proxy "$proxy" "$url"; \
                done; }
                for proxy in $HTTPS_PROXY http://${HTTPS_PROXY##*[@/]}; do
                  ask https://origin.test:\(secure)/ https://127.0.0.1:\(secure)/ https://localhost:\(secure)/
                  ask http://origin.test:\(plain)/ http://127.0.0.2:\(plain)/ "http://[::ffff:127.0.0.1]:\(plain)/"
                  ask https://pinproxy.test/
                done
                """
            let outside = try await bed.exec(options: Array(options.dropFirst()), "sh", "-c", script)
            #expect(outside.output.hasPrefix("200/200 502/000 502/000 000/200 000/502 000/200 200/200 "), "\(outside)")
            // Once through a door, and through one within another.
            for command in [["sh", "-c", script], bed.execArguments(options, ["sh", "-c", script])] {
                let run = try await bed.run(
                    bed.execArguments(options, command), environment: ProxyProcess.environment(in: bed))
                let once = "403/000 403/000 403/000 000/403 000/403 000/403 200/200 "
                #expect(run.output == once + once, "\(run)")
            }
            let refused = try await shared.proxy.events.first("exchange") { $0["status"] == "403" }
            #expect(
                refused["client"] == "unix:\(bed.path("proxy/state/pinproxy/door.sock"))"
                    && refused["client_uid"] != nil, "\(refused)")
        }
    }

    /// Local users barred from the port are barred from inside an isolated network too.
    @Test func aDoorIsForThoseWhoMayUseThePort() async throws {
        try await withTestBed { bed in
            _ = try await ProxyProcess(
                in: bed, trust: nil,
                sections: ["proxy": ["listen: 127.0.0.1:\(bed.port())", "allow_clients: [192.0.2.0/24]"]])
            let run = try await bed.exec(options: ["--isolated"], "curl", "-s", "http://a.test/")
            #expect(run.output.contains("is not in proxy.allow_clients"), "\(run)")
        }
    }

    @Test func withoutAProxyThatIsSaid() async throws {
        try await withTestBed { bed in
            try bed.file("proxy/pinproxy.yaml", "proxy: {listen: 127.0.0.1:\(try bed.port())}\npins: null\n")
            let create = [ProxyProcess.executable, "ca", "create", "--config", bed.path("proxy/pinproxy.yaml")]
            #expect(try await bed.run(create, environment: ProxyProcess.environment(in: bed)).succeeded)
            let run = try await bed.exec(options: ["--isolated"], "curl", "-s", "http://a.test/")
            #expect(
                run.told.count == 2 && run.told[0].contains("no proxy is running with the state directory"), "\(run)")
            #expect(run.told[1].contains("door.sock: No such file or directory; no proxy, "), "\(run)")
        }
    }

    @Test(arguments: [0, 7, 126, 255])
    func theExitCodeIsTheCommands(code: Int32) async throws {
        #expect(try await start("sh", "-c", "exit \(code)").ending() == .exited(code))
    }

    @Test func itIsFoundAndRunAsAShellWould() async throws {
        #expect(try await start("no-such-command").ending() == .exited(127))
        let unfit = try await exec(bed.directory)
        #expect(
            unfit.ending == .exited(126) && unfit.errors == "pinproxy: \(bed.directory): Permission denied", "\(unfit)")
        try bed.file("unmarked", "echo \"$1\"; exit 3\n", mode: 0o755)
        let script = try await exec(options: ["--explain-refusals=off"], "./unmarked", "--socket")
        #expect(script.ending == .exited(3) && script.output == "--socket", "\(script)")
    }

    @Test(arguments: [SIGTERM, SIGKILL, SIGPIPE])
    func aSignalThatEndsTheCommandEndsBoth(signal: CInt) async throws {
        #expect(try await start("sh", "-c", "kill -\(signal) $$; sleep 1000").ending() == .signalled(signal))
    }

    @Test func stoppedSignalledAndContinued() async throws {
        let process = try await start(
            "bash", "-c",
            "trap 'echo got it' USR1; echo ready; until [ -e isolated-continued ]; do sleep 0.02; done; exit 4")
        _ = try await process.output.first(awaiting: "the command") { $0 == "ready" ? $0 : nil }
        process.send(signal: SIGUSR1)
        _ = try await process.output.first(awaiting: "the signal") { $0 == "got it" ? $0 : nil }
        func state(_ process: pid_t) throws -> Character {
            let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
            return try #require(text.split(separator: ")").last?.dropFirst().first)
        }
        process.send(signal: SIGTSTP)
        try await eventually("it to stand still") { try state(process.identifier) == "T" }
        kill(process.identifier, SIGCONT)
        try await eventually("it to go on") { try state(process.identifier) != "T" }
        try bed.file("isolated-continued", "")
        #expect(try await process.ending() == .exited(4))
    }

    /// What `pinproxy exec` and its door have open isn't the command's.
    @Test func descriptorsAreTheCommands() async throws {
        let list = "ls /proc/self/fd | tr '\\n' ' '"
        let run = try await bed.run(
            ["bash", "-c", "exec 7>isolated-seven; \"$@\"", "bash"]
                + bed.execArguments(
                    ["--isolated", "--explain-refusals=off"], ["sh", "-c", "echo through >&7; \(list)"]),
            environment: ProxyProcess.environment(in: bed))
        #expect(run.output.split(separator: " ") == ["0", "1", "2", "3", "7"], "\(run)")
        #expect(try bed.contents("isolated-seven") == "through\n")
    }

    /// Data that a command has sent before it ended still arrives, though it doesn't wait for that.
    @Test func theLastWordArrives() async throws {
        let line =
            """
            POST http://\(OriginBed.name):\(shared.secondOriginPort)/last-word HTTP/1.1\\r\\nHost: \
            a\\r\\nContent-Length: 0\\r\\n\\r\\n
            """
        let run = try await exec("bash", "-c", "printf '\(line)' > /dev/tcp/127.0.0.1/\(shared.proxy.port)")
        #expect(run.succeeded, "\(run)")
        _ = try await shared.proxy.events.first("exchange") { $0["path"] == "/last-word" }
    }

    /// The door closes with the run: background processes left over have no way out.
    @Test func theDoorEndsWithTheRun() async throws {
        let script = """
            (until [ -e door-closed ]; do sleep 0.02; done; curl -s \(url("right.test")); echo $? > door-tried) > \
            /dev/null 2>&1 &
            curl -sS -o /dev/null \(url("right.test"))
            """
        #expect(try await exec("sh", "-c", script).succeeded)
        try bed.file("door-closed", "")
        try await eventually("the background's attempt") { (try? bed.contents("door-tried")) == "7\n" }
    }

    /// A run within a run has a door within a door.
    @Test func oneWithinAnother() async throws {
        let inner = bed.execArguments(
            ["--isolated"], ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url("right.test")])
        let run = try await bed.run(
            bed.execArguments(["--isolated"], inner), environment: ProxyProcess.environment(in: bed))
        #expect(run.output == "200", "\(run)")
    }

    @Test func aProxyThatComesBackIsReached() async throws {
        try await withTestBed { bed in
            let sections = ["proxy": ["listen: 127.0.0.1:\(try bed.port())"]]
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: sections)
            let script = "echo ready; until [ -e back ]; do sleep 0.02; done; curl -s https://nowhere.onion/"
            let process = try await bed.start(
                bed.execArguments(["--isolated"], ["sh", "-c", script]), environment: ProxyProcess.environment(in: bed))
            _ = try await process.output.first(awaiting: "the command") { $0 == "ready" ? $0 : nil }
            await proxy.process.stop()
            let next = try await ProxyProcess(in: bed, trust: nil, sections: sections)
            _ = try await next.events.first("run.begin")
            try bed.file("back", "")
            #expect(try await process.ending() == .exited(56))
            let told = await process.errors.text
            #expect(told.contains("nowhere.onion: Cannot resolve nowhere.onion"), "\(told)")
        }
    }

    // MARK: Users

    /// User ID, home and files are the user's; nothing of root's is passed on.
    @Test(.enabled(if: IsolationBed.isAvailableToUsers, "needs root, to be an ordinary user"))
    func anOrdinaryUser() async throws {
        let environment = try IsolationBed.openToUsers(bed)
        let options = ["--isolated", "--state-directory", bed.path("proxy/state/pinproxy")]
        let script =
            """
            id -u; id -g; grep CapEff /proc/self/status; touch ~/made && stat -c %u:%g ~/made; curl -sS \
            \(url("wrong.test"))
            """
        let run = try await bed.run(
            IsolationBed.asNobody + bed.execArguments(options, ["sh", "-c", script]), environment: environment)
        #expect(run.output == "65534\n65534\nCapEff:\t0000000000000000\n65534:65534", "\(run)")
        #expect(run.told.count == 1 && run.told[0].contains("Certificate pinning failure for wrong.test"), "\(run)")
        #expect(run.ending == .exited(56), "\(run)")
    }

    /// The message names what forbids it, and the command isn't run.
    @Test(
        .enabled(if: getuid() == 0, IsolationBed.whyRoot),
        arguments: [("user/max_user_namespaces", "user.max_user_namespaces is 0: raise it")])
    func namespacesAreForbidden(file: String, words: String) async throws {
        let forbid = "echo 0 > /proc/sys/\(file); exec setpriv --bounding-set=-all --inh-caps=-all \"$@\""
        let run = try await bed.run(
            ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"]
                + bed.execArguments(["--isolated"], ["touch", "was-run"]),
            environment: ProxyProcess.environment(in: bed))
        #expect(run.ending == .exited(126), "\(run)")
        #expect(
            run.told.count == 1
                && run.told[0].hasPrefix("pinproxy: touch was not run: the kernel makes no user namespace"), "\(run)")
        #expect(run.told.first?.contains(words) == true, "\(run)")
        #expect(!FileManager.default.fileExists(atPath: bed.path("was-run")))
    }

    /// By a path a program would get out: those at which names are asked for lead nowhere.
    @Test(.enabled(if: IsolationBed.isTransparencyAvailable, "needs root, to listen on ports 53, 80 and 443"))
    func nameServicesAreNotAsked() async throws {
        let server = """
            import os, socket, subprocess, sys
            os.makedirs("/run/nscd")
            listener = socket.socket(socket.AF_UNIX)
            listener.bind("/run/nscd/socket")
            listener.listen()
            sys.exit(subprocess.run(sys.argv[1:]).returncode)
            """
        let client = "import socket; socket.socket(socket.AF_UNIX).connect('/run/nscd/socket'); print('connected')"
        func run(_ command: [String]) async throws -> Run {
            try await bed.run(
                [
                    "unshare", "--mount", "sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "sh",
                    PythonPeer.python, "-c", server,
                ] + command,
                environment: ProxyProcess.environment(in: bed))
        }
        let outside = try await run([PythonPeer.python, "-c", client])
        #expect(outside.output == "connected", "\(outside)")
        let inside = try await run(bed.execArguments(["--isolated"], [PythonPeer.python, "-c", client]))
        #expect(inside.errors.contains("Connection refused") && inside.output.isEmpty, "\(inside)")
    }
}
