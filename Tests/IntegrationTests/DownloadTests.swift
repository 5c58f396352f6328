import Foundation
import PinproxyTestAuthority
import Testing

/// `session.resume`: an interrupted download is resumed inside the proxy, or fails visibly.
@Suite(.sharedBed(DownloadBed.prepare), .timeLimit(.minutes(5)))
struct DownloadTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    private func curl(_ arguments: [String]) async throws -> Run {
        try await shared.bed.curl(via: shared.proxy, ["-w", "%{http_code} %{size_download}"] + arguments)
    }

    private func url(_ path: String, host: String = "breaking.test") -> String {
        "https://\(host):\(shared.originPort)\(path)"
    }

    /// The requests that the origin has received so far.
    private func asked(_ path: String) async throws -> [LogEvent] {
        // The origin logs in order: once this request shows up, all earlier ones have.
        let mark = "/good/1/1/\(UUID().uuidString)"
        _ = try await curl(["-o", "/dev/null", url(mark)])
        _ = try await shared.origin!.events.first("asked") { $0["path"] == mark }
        return shared.origin!.events.all("asked").filter { $0["path"] == path }
    }

    /// Whether a file holds the first bytes that the origin has.
    private func isRight(_ file: String, _ length: Int) async throws -> Bool {
        let script = """
            import hashlib, sys
            block = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(1 << 15))
            data, n = open(sys.argv[1], "rb").read(), int(sys.argv[2])
            print(data == (block * (n // len(block) + 1))[:n])
            """
        return try await shared.bed.run([PythonPeer.python, "-c", script, file, "\(length)"]).output == "True"
    }

    @Test(arguments: ["good", "closes", "date", "busy", "hints"]) func aBrokenDownloadArrivesWhole(
        _ kind: String
    ) async throws {
        let length = 5_000_000
        let path = "/\(kind)/1500000/\(length)/whole"
        let file = shared.bed.path("whole-\(kind)")
        let run = try await curl(["-o", file, url(path)])
        #expect(run.succeeded && run.output == "200 \(length)", "\(run)")
        #expect(try await isRight(file, length))
        let requests = try await asked(path)
        #expect(requests.count >= 4 && requests[0]["range"] == "" && requests[1]["range"] != "", "\(requests)")
        #expect(requests.dropFirst().allSatisfy { $0["if_range"] != "" })
        // Each interruption is logged; the exchange is logged once.
        let line = try await shared.proxy.events.first("exchange") { $0["path"] == path }
        #expect(line["status"] == "200")
        // Of the response that the client saw: the first connection's.
        let first = try #require(line["first_byte"])
        #expect(line["retried"]?.contains(first) == true, "\(line)")
        #expect(shared.proxy.events.all("exchange").count { $0["path"] == path } == 1)
        #expect(!shared.proxy.events.all("download.resume").isEmpty)
    }

    /// The download's first authorization is no longer valid when it is interrupted.
    @Test func newChallengesAreAnsweredOnTheWay() async throws {
        let length = 2_000_000
        let path = "/expires/600000/\(length)/whole"
        let file = shared.bed.path("expires")
        let run = try await curl(["-o", file, url(path, host: "guarded.test")])
        #expect(run.succeeded && run.output == "200 \(length)", "\(run)")
        #expect(try await isRight(file, length))
        // Without credentials the client has to resume it.
        let open = try await curl(["-o", "/dev/null", url(path)])
        #expect(open.output.hasPrefix("401 "), "\(open)")
    }

    /// The client never takes a part for the whole, and never gets a byte that isn't the origin's.
    @Test(arguments: [
        "weak", "plain", "changed", "ignores", "version", "earlier", "later", "shorter", "longer", "whole-length",
        "no-range", "nonsense",
        "multipart", "gone", "refused", "moved",
    ])
    func aLyingOriginFailsVisibly(_ kind: String) async throws {
        let length = 400_000
        let path = "/\(kind)/150000/\(length)/lie"
        let file = shared.bed.path("lie-\(kind)")
        let run = try await curl(["-o", file, url(path)])
        #expect(!run.succeeded, "\(run)")
        let got = (try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int) ?? 0
        let isRight = try await isRight(file, got)
        #expect(got <= 150_000 && isRight, "\(run)")
        let requests = try await asked(path)
        #expect(requests.count == (["weak", "plain"].contains(kind) ? 1 : 2), "\(requests)")
        let line = try await shared.proxy.events.first("exchange") { $0["path"] == path }
        #expect(line["cause"] != nil, "\(line)")
    }

    @Test func resumeCanBeTurnedOff() async throws {
        let run = try await curl(["-o", shared.bed.path("off"), url("/good/150000/400000/off", host: "off.test")])
        #expect(!run.succeeded, "\(run)")
        #expect(try await asked("/good/150000/400000/off").count == 1)
    }

    /// An origin that stops answering is given up after a limited number of tries with pauses between, however it
    /// fails. A server that restarts behind a load balancer gets some seconds.
    @Test(arguments: ["silent", "accepts"]) func triesAreBounded(_ kind: String) async throws {
        let path = "/\(kind)/150000/400000/bounded"
        let run = try await curl(["--max-time", "120", "-o", shared.bed.path("bounded-\(kind)"), url(path)])
        #expect(!run.succeeded && !run.errors.contains("timed out"), "\(run)")
        let line = try await shared.proxy.events.first("exchange") { $0["path"] == path }
        #expect(try pauses(of: line) == [0, 250, 500, 1000, 2000, 4000, 8000, 8000])
    }

    /// The pauses before each try in milliseconds, from the log.
    private func pauses(of line: LogEvent) throws -> [Int] {
        try shared.proxy.events.all("download.resume").filter { $0["task"] == line["task"] }
            .map { Int((try #require($0["pause"].flatMap { Double($0) }) * 1000).rounded()) }
    }

    @Test func anOriginMaySayWhenItIsBack() async throws {
        let path = "/postponed/150000/400000/said"
        let file = shared.bed.path("postponed")
        let run = try await curl(["-o", file, url(path)])
        #expect(run.succeeded && run.output == "200 400000", "\(run)")
        #expect(try await isRight(file, 400_000))
        let line = try await shared.proxy.events.first("exchange") { $0["path"] == path }
        #expect(try pauses(of: line) == [0, 1000, 0])
        // A Retry-After of an hour is not waited for.
        let far = "/far/150000/400000/said"
        #expect(try await !curl(["-o", shared.bed.path("far"), url(far)]).succeeded)
        let ended = try await shared.proxy.events.first("exchange") { $0["path"] == far }
        #expect(ended["cause"]?.contains("a retry after 3600 seconds") == true, "\(ended)")
        #expect(try await asked(far).count == 2)
    }

    /// A request for a range, or with another method, is the client's to resume.
    @Test func onlyAWholeGETIsContinued() async throws {
        let path = "/good/150000/400000/own"
        let run = try await curl(["-r", "100000-", "-o", shared.bed.path("own"), url(path)])
        #expect(!run.succeeded, "\(run)")
        #expect(try await asked(path).count == 1)
    }

    @Test func manyAtATimeArriveWhole() async throws {
        let length = 1_000_000
        let run = try await shared.bed.curl(
            via: shared.proxy,
            [
                "-Z", "--parallel-max", "8", "-o", shared.bed.path("many-#1"), "-w", "%{http_code} %{size_download}\n",
                url("/good/300000/\(length)/many-[1-16]"),
            ])
        #expect(run.output.split(separator: "\n") == Array(repeating: "200 \(length)", count: 16), "\(run)")
        for number in 1...16 { #expect(try await isRight(shared.bed.path("many-\(number)"), length)) }
    }

    /// From both sides at one time: tasks are suspended and resumed while their downloads break off, a third of them is
    /// cancelled, and of another third the clients are killed. The others get all.
    @Test func downloadsAreControlledFromBothSides() async throws {
        // More than the sockets' buffers hold: no download ends before all have begun.
        let length = 24_000_000
        var clients: [ChildProcess] = []
        for number in 0..<12 {
            let pipe = shared.bed.path("pipe-\(number)")
            #expect(try await shared.bed.run(["mkfifo", pipe]).succeeded)
            clients.append(
                try await shared.bed.start(
                    [
                        "curl", "-sS", "--limit-rate", "3M", "-o", pipe,
                        url("/good/3000000/\(length)/controlled-\(number)"),
                    ],
                    environment: shared.proxy.clientEnvironment))
        }
        func tasks() async throws -> [TaskControl.Summary] {
            try await shared.tasks.list().filter { $0.path.contains("/controlled-") && $0.kind == "exchange" }
        }
        func number(of task: TaskControl.Summary) -> Int { Int(task.path.split(separator: "-").last!) ?? 0 }
        try await eventually("all to have begun") { try await tasks().filter { $0.bytesDown > 0 }.count == 12 }
        var readers: [ChildProcess] = []
        for number in 0..<12 {
            readers.append(try await shared.bed.start(["sh", "-c", "cat pipe-\(number) > controlled-\(number)"]))
        }
        let begun = try await tasks()
        for round in 0..<6 {
            for task in begun where number(of: task) % 3 == 0 || round < 3 {
                _ = try await shared.tasks.ask("POST", "/tasks/\(task.id)/suspend")
            }
            if round == 2 {
                for task in begun where number(of: task) % 3 == 1 {
                    #expect(try await shared.tasks.ask("POST", "/tasks/\(task.id)/cancel").status == 200)
                }
                for number in stride(from: 2, to: 12, by: 3) { clients[number].send(signal: SIGKILL) }
            }
            for task in begun { _ = try await shared.tasks.ask("POST", "/tasks/\(task.id)/resume") }
        }
        for (number, client) in clients.enumerated() {
            let ending = try await client.ending()
            switch number % 3 {
            case 0:
                #expect(ending == .exited(0), "\(ending)")
                #expect(try await readers[number].ending() == .exited(0))
                #expect(try await isRight(shared.bed.path("controlled-\(number)"), length))
            case 1: #expect(ending != .exited(0))
            default: break
            }
        }
        try await eventually("a line of each") {
            shared.proxy.events.all("exchange").count { $0["path"]?.contains("/controlled-") == true } == 12
        }
        #expect(try await tasks().isEmpty)
    }

    /// A slow reader slows the download down. The proxy's memory doesn't grow for it, or for the length of the body.
    @Test func memoryStaysFlat() async throws {
        // A proxy without other traffic.
        try await withTestBed { bed in
            let alone = try await DownloadBed.prepare(bed)
            let length = 96_000_000
            let before = try alone.proxy.peakMemory()
            let run = try await bed.curl(
                via: alone.proxy,
                [
                    "-w", "%{http_code} %{size_download}", "-o", "/dev/null",
                    "https://breaking.test:\(alone.originPort)/good/7000000/\(length)/flat",
                ])
            #expect(run.succeeded && run.output == "200 \(length)", "\(run)")
            let grown = try alone.proxy.peakMemory() - before
            #expect(grown < 24 << 20 || Sanitizer.isOn, "\(grown)")
        }
    }

    @Test func aClientThatLeavesEndsIt() async throws {
        let path = "/good/3000000/60000000/left"
        let run = try await curl(["--limit-rate", "4M", "--max-filesize", "1", "-o", "/dev/null", url(path)])
        #expect(!run.succeeded)
        _ = try await shared.proxy.events.first("exchange") { $0["path"] == path }
        // No range is requested after the client has left.
        let count = try await asked(path).count
        #expect(try await asked(path).count == count)
    }
}

enum DownloadBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let names = ["breaking.test", "off.test", "guarded.test"]
        let chain = ServedChain(try roots.intermediate.issue(TestRoots.template(names)))
        let origin = try await PythonPeer(
            in: bed, script: "download_origin.py",
            [
                "--certificate", try bed.file("breaking.pem", chain.pem), "--key",
                try bed.file("breaking.key", chain.keyPEM),
            ])
        try bed.file("proxy/secret", "geheim\n")
        let proxy = try await ProxyProcess(
            in: bed,
            pins: """
                hosts:
                  - {match: off.test, session: {resume: false}}
                  - {match: guarded.test, session: {credentials: {user: ann, password_file: secret}}}

                """, trust: roots.write(to: bed),
            hosts: Dictionary(uniqueKeysWithValues: names.map { ($0, "127.0.0.1") }))
        return SharedBed(bed: bed, proxy: proxy, originPort: origin.port, origin: origin)
    }
}
