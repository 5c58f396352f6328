import Foundation
import Testing

@testable import pinproxy

/// `pinproxy doctor`, and the hosts for which the proxy answers itself.
@Suite(.sharedBed(DoctorBed.prepare), .timeLimit(.minutes(5)))
struct DoctorTests {
    let shared: SharedBed
    var bed: TestBed { shared.bed }

    init() throws {
        shared = try sharedBed()
    }

    private func doctor(_ arguments: String..., environment: [String: String] = [:]) async throws -> Run {
        try await bed.run(
            [ProxyProcess.executable, "doctor", "--config", bed.path("proxy/pinproxy.yaml")] + arguments,
            environment: ProxyProcess.environment(in: bed).merging(environment) { $1 })
    }

    private func report(_ arguments: String..., environment: [String: String] = [:]) async throws -> ClientReport {
        let run = try await bed.run(
            [ProxyProcess.executable, "doctor", "--json", "--config", bed.path("proxy/pinproxy.yaml")] + arguments,
            environment: ProxyProcess.environment(in: bed).merging(environment) { $1 })
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let reports = try decoder.decode([ClientReport].self, from: Data(run.output.utf8))
        #expect(run.succeeded == reports.allSatisfy(\.works) && reports.count == 1, "\(run)")
        return try #require(reports.first)
    }

    /// An environment where a script replaces curl.
    private func withCurl(_ script: String) throws -> [String: String] { try with("curl", script) }

    /// An environment where a script replaces a program, and Java.
    private func with(_ program: String, _ script: String) throws -> [String: String] {
        let folder = "bin-\(UUID())"
        for name in [program, "java"] {
            try bed.file(
                "\(folder)/\(name)",
                "#!/bin/sh\n[ \"$1\" != --version ] || { echo \(name) 1.2.3; exit; }\n\(script)\n", mode: 0o755)
        }
        return ["PATH": bed.path(folder) + ":" + (bed.environment["PATH"] ?? "")]
    }

    // MARK: The test hosts

    @Test func theRightPinIsLetThroughAndTheWrongOneRefusedAsAnyOther() async throws {
        let right = try await bed.exec("curl", "-sS", "https://pinproxy.test/any?path", "https://pinproxy.test:8443/")
        let greeting = "pinproxy answers for this host itself."
        #expect(right.succeeded && right.output == "\(greeting)\n\(greeting)", "\(right)")
        let wrong = try await bed.exec("curl", "-sSv", "https://wrong.pinproxy.test/")
        #expect(wrong.ending == .exited(56), "\(wrong)")
        #expect(wrong.errors.contains("502 Certificate pinning failure for wrong.pinproxy.test"), "\(wrong)")
        #expect(wrong.told.count == 1, "\(wrong)")
        let mismatch = try await shared.proxy.events.first("pin.mismatch") { $0["host"] == "wrong.pinproxy.test" }
        #expect(mismatch["entry"] == "wrong.pinproxy.test")
        let plain = try await bed.exec("curl", "-sS", "http://pinproxy.test/")
        #expect(plain.output.contains("pins this host; use https://"), "\(plain)")
    }

    /// The names are reserved exactly: no others, and none below them.
    @Test func otherNamesAreAskedForInTheNetwork() async throws {
        let other = try await bed.exec("curl", "-sSv", "https://other.pinproxy.test/")
        #expect(other.errors.contains("Cannot resolve other.pinproxy.test"), "\(other)")
    }

    @Test(arguments: ["pinproxy.test", "WRONG.pinproxy.test", "pinproxy.test:8443"])
    func anEntryForThemIsAnError(name: String) async throws {
        let folder = "reserved-\(UUID())"
        try ProxyProcess.write(
            to: bed, folder: folder, pins: "hosts:\n  - match: \(name)\n    action: deny\n", trust: nil)
        let check = try await bed.run([
            ProxyProcess.executable, "check", "--config", bed.path("\(folder)/pinproxy.yaml"),
        ])
        #expect(check.ending == .exited(78), "\(check)")
        #expect(
            check.errors.contains("pins.yaml:2:12: error: match: ") && check.errors.contains("is reserved"), "\(check)")
    }

    /// A policy that denies every other host doesn't deny these, and a parent proxy isn't used for them.
    @Test func theyAreThereWhateverIsConfigured() async throws {
        try await withTestBed { bed in
            _ = try await ProxyProcess(
                in: bed, pins: "defaults: {action: deny}\nhosts:\n  - {match: '**.test', action: deny}\n", trust: nil,
                sections: ["upstream": ["parent: http://127.0.0.1:1"], "proxy": ["listen: 127.0.0.1:\(bed.port())"]])
            let right = try await bed.exec("curl", "-sS", "https://pinproxy.test/")
            #expect(right.succeeded, "\(right)")
        }
    }

    /// Held connections to the test hosts don't keep others out.
    @Test func manyConnectionsAreBounded() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: ["proxy": ["workers: 1"]])
            let before = try proxy.openDescriptors()
            var held: [RawConnection] = []
            for number in 1...100 {
                let connection = try RawConnection(to: proxy)
                try await connection.send(
                    "CONNECT pinproxy.test:\(number) HTTP/1.1\r\nHost: pinproxy.test:\(number)\r\n\r\n")
                #expect(try await connection.response().status == 200)
                held.append(connection)
            }
            // The limit: both ends of 32, and the clients' own; the proxy's end of others closes when it is used. Files
            // opened to read something are closed again.
            try await eventually("no more to be open") { try proxy.openDescriptors() <= before + 100 + 100 + 32 }
            let curl = try await bed.curl(via: proxy, ["-sS", "--retry", "0", "https://pinproxy.test/"])
            #expect(curl.succeeded && curl.output.hasPrefix("pinproxy answers"), "\(curl)")
            withExtendedLifetime(held) {}
        }
    }

    @Test(arguments: [("pinproxy.test", 0, "a right pin"), ("wrong.pinproxy.test:8443", 1, "a wrong pin")])
    func explainKnowsThem(host: String, code: Int32, words: String) async throws {
        let run = try await bed.run(
            [ProxyProcess.executable, "explain", "--config", bed.path("proxy/pinproxy.yaml"), host],
            environment: ProxyProcess.environment(in: bed))
        #expect(run.ending == .exited(code) && run.output.contains(words), "\(run)")
    }

    // MARK: What is found

    @Test func aProgramThatWorks() async throws {
        let report = try await report("curl")
        #expect(report.works && report.takesProxy && report.trustsAuthority == true, "\(report)")
        #expect(report.execTells && report.set == nil, "\(report)")
        let text = try await doctor("curl")
        #expect(text.succeeded && text.output.contains("1 of 1 program work"), "\(text)")
    }

    /// A user's configuration of a program is kept.
    @Test func aProgramThatDoesNotTrustTheAuthority() async throws {
        let home = "home-\(UUID())"
        try bed.file(
            "\(home)/.curlrc",
            "silent\ncacert = /usr/share/ca-certificates/mozilla/ISRG_Root_X1.crt\ncapath = /dev/null\n")
        let report = try await report("curl", environment: ["HOME": bed.path(home)])
        #expect(!report.works && report.takesProxy && report.trustsAuthority == false, "\(report)")
        #expect(report.said.contains("certificate") && report.transparent == nil, "\(report)")
        // The setting that does it.
        #expect(
            report.settings.count == 2 && report.settings[0].hasPrefix("\(bed.path(home))/.curlrc:2:cacert = "),
            "\(report)")
    }

    /// The file and the setting, as text. An example in a comment of settings.xml doesn't count.
    @Test func settingsOfGitAndMaven() async throws {
        let home = "home-\(UUID())"
        try bed.file("\(home)/.gitconfig", "[http]\n\tproxy = http://127.0.0.1:1\n")
        try bed.file(
            "\(home)/.m2/settings.xml",
            "<settings>\n<!-- one\n<proxy> --><proxies><!-- <proxy> -->\n<proxy>\n</proxy></proxies></settings>\n")
        let git = try await report("git", environment: ["HOME": bed.path(home)])
        #expect(git.settings == ["\(bed.path(home))/.gitconfig: http.proxy http://127.0.0.1:1"], "\(git)")
        let programs = try with("mvn", "exit 1").merging(["HOME": bed.path(home)]) { $1 }
        let maven = try await report("mvn", environment: programs)
        #expect(maven.settings == ["\(bed.path(home))/.m2/settings.xml:4:<proxy>"], "\(maven)")
    }

    @Test func aProgramThatGoesRoundTheProxy() async throws {
        let report = try await report("curl", environment: withCurl("exec /usr/bin/curl --noproxy '*' \"$@\""))
        #expect(!report.works && !report.takesProxy && report.trustsAuthority == nil, "\(report)")
        let text = try await doctor("curl", environment: withCurl("exec /usr/bin/curl --noproxy '*' \"$@\""))
        #expect(text.ending == .exited(1) && text.output.contains("Could not resolve host"), "\(text)")
        guard IsolationBed.isAvailable else { return }
        #expect(report.transparent == true && report.worksThen == true, "\(report)")
        #expect(text.output.contains("set: pinproxy exec --transparent (tried: it works)"), "\(text)")
    }

    /// Python's own files say where, and not what.
    @Test func ofATracebackTheErrorIsSaid() async throws {
        let trace = """
            echo '  File "/usr/lib/python3.11/asyncio/base_events.py", line 1419, in _ensure_resolved'
            echo 'socket.gaierror: [Errno -3] no name server'; exit 1
            """
        let report = try await report("curl", environment: withCurl(trace))
        #expect(report.said == "socket.gaierror: [Errno -3] no name server", "\(report)")
    }

    /// It is ended, with what it has started.
    @Test func aProgramThatDoesNotEnd() async throws {
        let mark = "31\(UInt32.random(in: 100_000...999_999))"
        let report = try await report("curl", "--timeout", "1", environment: withCurl("sleep \(mark) & sleep \(mark)"))
        #expect(!report.works && report.said.contains("hadn't ended after 1.0 seconds"), "\(report)")
        #expect(try await !bed.run(["pgrep", "-f", "sleep \(mark)"]).succeeded)
    }

    /// An interrupted `doctor` leaves nothing behind, and neither does the program under test.
    @Test(arguments: [SIGINT, SIGTERM]) func anInterruptEndsIt(signal: CInt) async throws {
        let mark = "32\(UInt32.random(in: 100_000...999_999))"
        let temporary = bed.path("temporary-\(UUID())")
        try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: true)
        let process = try await bed.start(
            [ProxyProcess.executable, "doctor", "--config", bed.path("proxy/pinproxy.yaml"), "curl"],
            environment: ProxyProcess.environment(in: bed).merging(
                withCurl("echo >> \(temporary)-begun; sleep \(mark)")
            ) { $1 }
            .merging(["TMPDIR": temporary]) { $1 })
        try await eventually("curl to be called") { FileManager.default.fileExists(atPath: temporary + "-begun") }
        process.send(signal: signal)
        #expect(try await process.ending() == .signalled(signal))
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary) == [])
        #expect(try await !bed.run(["pgrep", "-f", "sleep \(mark)"]).succeeded)
    }

    /// Text of a program is text.
    @Test func whatAProgramPrintsIsMadeHarmless() async throws {
        let run = try await doctor("curl", environment: withCurl("printf '\\033]0;x\\007\\302\\233evil\\n'; exit 1"))
        #expect(
            run.output.contains("evil") && !run.output.contains("\u{1B}") && !run.output.contains("\u{9B}"), "\(run)")
    }

    @Test func anUnknownProgramAndOneThatIsNotThere() async throws {
        let unknown = try await doctor("no\u{1B}such")
        #expect(unknown.ending == .exited(2) && unknown.errors.contains("it can test curl, wget, "), "\(unknown)")
        #expect(!unknown.errors.contains("\u{1B}"), "\(unknown)")
        let missing = try await doctor("curl", environment: ["PATH": "/nowhere"])
        #expect(missing.ending == .exited(1) && missing.errors.contains("curl is not installed here"), "\(missing)")
        let timeout = try await doctor("--timeout", "0")
        #expect(timeout.ending == .exited(2), "\(timeout)")
    }

    @Test func withoutAProxy() async throws {
        let folder = "silent-\(UUID())"
        try ProxyProcess.write(to: bed, folder: folder, pins: "hosts: []\n", trust: nil)
        let run = try await bed.run(
            [ProxyProcess.executable, "doctor", "--config", bed.path("\(folder)/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: bed, folder: folder))
        #expect(run.ending == .exited(1) && run.errors.contains("no proxy is running") && run.output.isEmpty, "\(run)")
    }

    /// The user's own files and directories, and none besides: what programs make is made elsewhere.
    @Test func nothingOfTheUsersIsChanged() async throws {
        let home = "home-\(UUID())"
        let files = [
            ".wgetrc": "tries = 1\n", ".wget-hsts": "# HSTS\n", ".config/git/config": "[core]\n",
            ".subversion/servers": "[global]\n",
        ]
        for (name, text) in files {
            try bed.file("\(home)/\(name)", text)
        }
        func contents() throws -> [String: String] {
            var contents: [String: String] = [:]
            for name in try FileManager.default.subpathsOfDirectory(atPath: bed.path(home)) {
                let status = try FileManager.default.attributesOfItem(atPath: bed.path("\(home)/\(name)"))
                contents[name] =
                    "\(status[.modificationDate] ?? "") \((try? bed.contents("\(home)/\(name)")) ?? "directory")"
            }
            return contents
        }
        let before = try contents()
        let temporary = bed.path("temporary-\(UUID())")
        try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: true)
        let some = ["wget", "git", "apt", "svn", "nodejs", "perl: LWP", "w3m", "lftp", "composer"]
        for client in InstalledClients.areAll ? InstalledClients.programs.map(\.name) : some {
            _ = try await doctor(
                client,
                environment: InstalledClients.environment(in: bed).merging([
                    "HOME": bed.path(home), "TMPDIR": temporary,
                ]) { $1 })
        }
        #expect(try contents() == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary) == [])
    }
}

enum DoctorBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let proxy = try await ProxyProcess(
            in: bed, trust: nil,
            sections: ["proxy": ["listen: 127.0.0.1:\(bed.port())"], "timeouts": ["tls_handshake: 60s"]])
        return SharedBed(bed: bed, proxy: proxy, originPort: 0)
    }
}
