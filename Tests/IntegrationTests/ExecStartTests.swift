import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy exec --start`: starts a proxy for the run, if none is running.
@Suite(.timeLimit(.minutes(5)))
struct ExecStartTests {
    /// A configuration, and an origin that it pins rightly and wrongly.
    private func prepare(_ bed: TestBed, pins: String? = nil) async throws -> PythonPeer {
        let roots = try TestRoots()
        let origin = try await PythonPeer.origin(in: bed, chain: roots.chain("right.test", "wrong.test"))
        let wrong = "hosts: [{match: wrong.test, pinning: public-key, pins: [\(String.wrongPin)]}]\n"
        // Another process has the port.
        try ProxyProcess.write(
            to: bed, folder: "proxy", pins: pins ?? wrong, trust: roots.write(to: bed),
            sections: [
                "proxy": ["listen: 127.0.0.1:1"], "admin": ["listen: 127.0.0.1:2"],
                "upstream": [IsolationBed.opensLoopback],
            ])
        try bed.file("proxy/hosts", "127.0.0.1 right.test wrong.test\n")
        return origin
    }

    /// Whether a proxy is using the state directory.
    private func isRunning(_ bed: TestBed) async throws -> Bool {
        let status = [ProxyProcess.executable, "status", "--config", bed.path("proxy/pinproxy.yaml")]
        return try await bed.run(status, environment: ProxyProcess.environment(in: bed)).succeeded
    }

    @Test(arguments: [[], ["--isolated"], ["--explain-refusals=off"]])
    func itServesTheRunAndEndsWithIt(options: [String]) async throws {
        if options == ["--isolated"], !IsolationBed.isAvailable { return }
        try await withTestBed { bed in
            let origin = try await prepare(bed)
            let script = """
                curl -sS -o /dev/null -w '%{http_code} ' https://right.test:\(origin.port)/
                curl -s https://wrong.test:\(origin.port)/
                exit 9
                """
            let run = try await bed.exec(options: ["--start"] + options, "sh", "-c", script)
            #expect(run.ending == .exited(9) && run.output.hasPrefix("200"), "\(run)")
            if options != ["--explain-refusals=off"] {
                #expect(
                    run.told.count == 1 && run.told[0].contains("Certificate pinning failure for wrong.test"), "\(run)")
            }
            // By then, and not some time later: the next command may start another proxy.
            #expect(try await !isRunning(bed))
            #expect(try bed.contents("proxy/state/pinproxy/exec.log").contains("\"event\":\"pin.mismatch\""))
        }
    }

    /// It has its owner's passwords and client certificates. Root is the owner here.
    @Test(.enabled(if: IsolationBed.isTransparencyAvailable, "needs root, to be another user"))
    func itServesItsOwnerAndItsRunsAlone() async throws {
        try await withTestBed { bed in
            let origin = try await prepare(bed)
            let nobody = IsolationBed.asNobody.joined(separator: " ")
            // The proxy's URL with the run's token, without it, and with the token of no run.
            let script = """
                plain=http://${HTTPS_PROXY#*@} wrong=http://pinproxy-run:$(printf '%064d' 0)@${HTTPS_PROXY#*@}
                ask() { "$@" curl -s -o /dev/null -w '%{http_connect}/%{http_code} ' -k --proxy "$proxy" "$url"; }
                for url in https://right.test:\(origin.port)/ http://right.test:1/; do
                  for proxy in $HTTPS_PROXY $plain $wrong; do ask env -i; ask \(nobody); done
                  echo
                done
                stat -c %a "$STATE/runs.sock"
                \(nobody) curl -sS --unix-socket "$STATE/runs.sock" -H "Authorization: Bearer $(printf '%064d' 1)" \
                http://localhost/runs -d '' 2>&1
                echo ${HTTPS_PROXY#*@} > address
                """
            let run = try await bed.exec(
                options: ["--start"], environment: ["STATE": bed.path("proxy/state/pinproxy")], "sh", "-c", script)
            let lines = run.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            // Nothing listens on port 1: a client that is served gets that error.
            #expect(lines.first == "200/200 200/200 200/200 407/000 200/200 407/000", "\(run)")
            #expect(lines.dropFirst().first == "000/502 000/502 000/502 000/407 000/502 000/407", "\(run)")
            #expect(lines.dropFirst(2).first == "600", "\(run)")
            #expect(
                lines.last?.contains("Failed to connect") == true || lines.last?.contains("Couldn't connect") == true,
                "\(run)")
        }
    }

    @Test func theOneThatRunsIsUsed() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let run = try await bed.exec(options: ["--start"], "curl", "-s", "http://nowhere.onion/its-own")
            #expect(run.succeeded, "\(run)")
            _ = try await proxy.events.first("exchange") { $0["path"] == "/its-own" }
            #expect(try await isRunning(bed))
        }
    }

    /// Several concurrent runs share it; it ends with the last one.
    @Test func severalRunsShareIt() async throws {
        try await withTestBed { bed in
            let origin = try await prepare(bed)
            func script(_ number: Int) -> String {
                """
                touch began-\(number); until [ -e over-\(number) ]; do sleep 0.02; done; curl -sS -o /dev/null \
                https://right.test:\(origin.port)/
                """
            }
            var runs: [ChildProcess] = []
            for number in 0..<4 {
                runs.append(
                    try await bed.start(
                        bed.execArguments(["--start"], ["sh", "-c", script(number)]),
                        environment: ProxyProcess.environment(in: bed)))
            }
            try await eventually("all to run") {
                (0..<4).allSatisfy { FileManager.default.fileExists(atPath: bed.path("began-\($0)")) }
            }
            // One of these runs started the proxy.
            for number in 0..<4 {
                #expect(try await isRunning(bed))
                try bed.file("over-\(number)", "")
                #expect(try await runs[number].ending() == .exited(0))
                #expect(await runs[number].errors.text == "")
            }
            try await eventually("its end") { try await !isRunning(bed) }
        }
    }

    @Test func aKilledRunLeavesNoProxy() async throws {
        try await withTestBed { bed in
            _ = try await prepare(bed)
            let process = try await bed.start(
                ["env"]
                    + bed.execArguments(
                        ["--start"], ["sh", "-c", "echo ready; until [ -e over ]; do sleep 0.02; done; touch is-over"]),
                environment: ProxyProcess.environment(in: bed))
            _ = try await process.output.first(awaiting: "the command") { $0 == "ready" ? $0 : nil }
            #expect(try await isRunning(bed))
            process.send(signal: SIGKILL)
            try await eventually("its end") { try await !isRunning(bed) }
            // The orphaned command still runs to its end.
            try bed.file("over", "")
            try await eventually("the command's end") { FileManager.default.fileExists(atPath: bed.path("is-over")) }
        }
    }

    /// The terminal's signals are for the command.
    @Test func anInterruptIsTheCommands() async throws {
        try await withTestBed { bed in
            let origin = try await prepare(bed)
            let fetch = "curl -sS -o /dev/null -w \"%{http_code}\" https://right.test:\(origin.port)/"
            // A terminal sends it once; from a process, it is forwarded as well.
            let script = "trap 'trap : INT; \(fetch); exit 5' INT; echo ready; while :; do sleep 0.02; done"
            let process = try await bed.start(
                ["setsid", "--wait"] + bed.execArguments(["--start"], ["bash", "-c", script]),
                environment: ProxyProcess.environment(in: bed))
            _ = try await process.output.first(awaiting: "the command") { $0 == "ready" ? $0 : nil }
            let children = try String(
                contentsOfFile: "/proc/\(process.identifier)/task/\(process.identifier)/children", encoding: .utf8)
            let exec = pid_t(children.split(separator: " ").first ?? "") ?? process.identifier
            kill(-getpgid(exec), SIGINT)
            #expect(try await process.ending() == .exited(5))
            #expect(await process.output.text == "ready\n200")
        }
    }

    /// The message says why it can't start, and the command isn't run.
    @Test func itCannotStart() async throws {
        try await withTestBed { bed in
            _ = try await prepare(bed, pins: "hosts: [{match: a.test, pinnning: none}]\n")
            let pins = try await bed.exec(options: ["--start"], "touch", "was-run")
            #expect(pins.ending == .exited(78), "\(pins)")
            #expect(
                pins.errors.contains("pins.yaml:1:")
                    && pins.errors.hasSuffix("pinproxy: --start: the proxy couldn't be started"), "\(pins)")
            try bed.file("proxy/pins.yaml", "hosts: []\n")
            try bed.file("file", "")
            let directory = try await bed.exec(
                options: ["--start", "--state-directory", bed.path("file/state")], "touch", "was-run")
            #expect(directory.ending != .exited(0) && directory.errors.contains(bed.path("file/state")), "\(directory)")
            #expect(!FileManager.default.fileExists(atPath: bed.path("was-run")))
        }
    }
}
