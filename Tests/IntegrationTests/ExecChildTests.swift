import Foundation
import Testing

/// `pinproxy exec` sits between the command and its parent, and neither notices.
@Suite(.sharedBed(ExecChildBed.prepare), .timeLimit(.minutes(5)))
struct ExecChildTests {
    let shared: SharedBed
    var bed: TestBed { shared.bed }

    init() throws {
        shared = try sharedBed()
    }

    private func start(_ command: String..., launcher: [String] = []) async throws -> ChildProcess {
        try await bed.start(
            ["env"] + launcher + bed.execArguments(["--explain-refusals=off"], command),
            environment: ProxyProcess.environment(in: bed))
    }

    @Test(arguments: [0, 1, 7, 126, 127, 255])
    func theExitCodeIsTheCommands(code: Int32) async throws {
        #expect(try await start("sh", "-c", "exit \(code)").ending() == .exited(code))
    }

    @Test(arguments: [SIGTERM, SIGKILL, SIGINT, SIGPIPE, SIGSEGV, SIGUSR1])
    func aSignalThatEndsTheCommandEndsBoth(signal: CInt) async throws {
        #expect(try await start("sh", "-c", "kill -\(signal) $$; sleep 1000").ending() == .signalled(signal))
    }

    @Test func itIsFoundAndRunAsAShellWould() async throws {
        #expect(try await start("no-such-command").ending() == .exited(127))
        #expect(try await start(bed.directory).ending() == .exited(126))
        try bed.file("not-executable", "x", mode: 0o644)
        #expect(try await start("./not-executable").ending() == .exited(126))
    }

    /// A signal from another process is forwarded to the command, once.
    @Test(arguments: [
        ("HUP", SIGHUP), ("INT", SIGINT), ("TERM", SIGTERM), ("USR1", SIGUSR1), ("USR2", SIGUSR2), ("WINCH", SIGWINCH),
    ])
    func signalsArePassedOn(name: String, signal: CInt) async throws {
        let process = try await start(
            "bash", "-c",
            """
            trap 'echo got \(name); count=$((count+1))' \(name); echo ready; while [ ! -e done-\(name) ]; do sleep \
            0.02; done; exit $count
            """
        )
        _ = try await process.output.first(awaiting: "the command") { $0 == "ready" ? $0 : nil }
        process.send(signal: signal)
        _ = try await process.output.first(awaiting: "the signal") { $0 == "got \(name)" ? $0 : nil }
        try bed.file("done-\(name)", "")
        #expect(try await process.ending() == .exited(1))
    }

    /// The kernel sends the terminal's signals to both: the command must not get them twice.
    @Test(arguments: [[], ["--isolated"]]) func theTerminalsKeys(options: [String]) async throws {
        if options == ["--isolated"], !IsolationBed.isAvailable { return }
        let exec = (["pinproxy"] + bed.execArguments(["--explain-refusals=off"] + options, []).dropFirst()).joined(
            separator: " ")
        func command(_ script: String) -> String { "\(exec) bash -c '\(script)'\n" }
        let count = "n=0; trap \"n=\\$((n+1))\" INT; echo rea\"\"dy; read x; read x; exit \\$((40+n))"
        let steps: [[String]] = [
            ["prompt> ", command("echo rea\"\"dy; read x; echo g\"\"ot $x; exit 5")],
            ["ready", "\u{1A}"],
            ["Stopped", "echo shell\"\" again\n"],
            ["shell again", "fg\n"],
            ["pinproxy exec", "line\n"],
            ["got line", "echo co\"\"de $?\n"],
            ["code 5", command("echo rea\"\"dy; sleep 1000")],
            ["ready", "\u{3}"],
            ["prompt> ", "echo co\"\"de $?\n"],
            ["code 130", command(count.replacingOccurrences(of: "\\", with: ""))],
            ["ready", "\u{3}"],
            ["\\^C", "one\ntwo\n"],
            ["prompt> ", "echo co\"\"de $?\n"],
            ["code 41", "\n"],
        ]
        let json = String(decoding: try JSONEncoder().encode(steps), as: UTF8.self)
        let path = (ProxyProcess.executable as NSString).deletingLastPathComponent
        let run = try await bed.run(
            [PythonPeer.python, PythonPeer.path("terminal.py"), json],
            environment: ProxyProcess.environment(in: bed).merging(["PATH": "\(path):/usr/bin:/bin", "TERM": "dumb"]) {
                $1
            })
        #expect(run.succeeded, "\(run)")
    }

    /// A stopped command stops `pinproxy exec`, so that its parent notices. Both continue together.
    @Test func stoppedAndContinued() async throws {
        let process = try await start("sh", "-c", "echo ready; until [ -e continued ]; do sleep 0.02; done; echo over")
        _ = try await process.output.first(awaiting: "the command") { $0 == "ready" ? $0 : nil }
        func state(_ process: pid_t) throws -> Character {
            let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
            return try #require(text.split(separator: ")").last?.dropFirst().first)
        }
        let children = try String(
            contentsOfFile: "/proc/\(process.identifier)/task/\(process.identifier)/children", encoding: .utf8)
        let command = try #require(pid_t(children.split(separator: " ").first ?? ""))
        kill(command, SIGSTOP)
        try await eventually("both to stand still") { try state(process.identifier) == "T" && state(command) == "T" }
        kill(process.identifier, SIGCONT)
        try await eventually("both to go on") { try state(process.identifier) != "T" && state(command) != "T" }
        try bed.file("continued", "")
        #expect(try await process.ending() == .exited(0))
    }

    /// As the first process of a container it also has orphans to reap.
    @Test func nothingIsLeftBehind() async throws {
        let script = "(sleep 0.1 &) ; (exit 3) & wait; echo $PPID; until [ -e looked ]; do sleep 0.02; done"
        let process = try await start("bash", "-c", script)
        _ = try await process.output.first(awaiting: "the command") { Int($0) }
        let children = try String(
            contentsOfFile: "/proc/\(process.identifier)/task/\(process.identifier)/children", encoding: .utf8)
        #expect(children.split(separator: " ").count == 1)
        try bed.file("looked", "")
        #expect(try await process.ending() == .exited(0))
    }

    /// `pinproxy exec` doesn't wait for background processes.
    @Test func aCommandThatGoesIntoTheBackground() async throws {
        let process = try await start(
            "sh", "-c",
            "(until [ -e background-over ]; do sleep 0.02; done; touch background-done) > /dev/null 2>&1 & exit 4")
        #expect(try await process.ending() == .exited(4))
        try bed.file("background-over", "")
        try await eventually("the background's end") {
            FileManager.default.fileExists(atPath: bed.path("background-done"))
        }
    }

    @Test func descriptorsAreTheCommands() async throws {
        let script = """
            exec 7>seven; "$@"
            """
        let process = try await bed.start(
            ["bash", "-c", script, "bash"]
                + bed.execArguments(
                    ["--explain-refusals=off"], ["sh", "-c", "echo through >&7; ls /proc/self/fd | tr '\\n' ' '"]),
            environment: ProxyProcess.environment(in: bed))
        #expect(try await process.ending() == .exited(0))
        #expect(try bed.contents("seven") == "through\n")
        // 3 is the directory that ls reads.
        #expect(await process.output.text.split(separator: " ") == ["0", "1", "2", "3", "7"])
    }

    /// A message that can't be written is dropped, and changes nothing else.
    @Test(arguments: ["2>&-", "2>/dev/full", "0<&- 1>&- 2>&-", "2>&1 | true"])
    func standardErrorIsClosed(redirection: String) async throws {
        let mark = bed.path("ran-\(UUID())")
        let command = bed.execArguments([], ["sh", "-c", "curl -s https://nowhere.onion/; touch \(mark); exit 6"])
            .joined(separator: "' '")
        let run = try await bed.run(
            ["bash", "-c", "set -o pipefail; '\(command)' \(redirection)"],
            environment: ProxyProcess.environment(in: bed))
        #expect(run.ending == .exited(6), "\(run)")
        #expect(FileManager.default.fileExists(atPath: mark))
    }

    /// A command may close its standard error: `pinproxy exec` still reports on its own copy.
    @Test func theCommandClosesItsStandardError() async throws {
        let run = try await bed.exec("sh", "-c", "exec 2>&-; curl -s https://nowhere.onion/; true")
        #expect(run.succeeded && run.told.count == 1, "\(run)")
    }

    /// A hang-up ignored by nohup stays ignored for the command.
    @Test func ignoredSignalsStayIgnored() async throws {
        let process = try await start(
            "bash", "-c", "echo ready; until [ -e hung-up ]; do sleep 0.02; done; exit 3", launcher: ["nohup"])
        _ = try await process.output.first(awaiting: "the command") { $0 == "ready" ? $0 : nil }
        process.send(signal: SIGHUP)
        try bed.file("hung-up", "")
        #expect(try await process.ending() == .exited(3))
    }
}

enum ExecChildBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        SharedBed(
            bed: bed,
            proxy: try await ProxyProcess(
                in: bed, trust: nil, sections: ["proxy": ["listen: 127.0.0.1:\(bed.port())"]]),
            originPort: 0)
    }
}
