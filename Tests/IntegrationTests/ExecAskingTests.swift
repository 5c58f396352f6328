import Foundation
import PinproxyTestAuthority
import Testing

/// Programs that send the proxy no name and password. The proxy asks `pinproxy exec` whether their connections belong
/// to its run.
@Suite(.sharedBed(ExecRefusalBed.prepare), .timeLimit(.minutes(4)))
struct ExecAskingTests {
    let shared: SharedBed
    var bed: TestBed { shared.bed }
    let wrongURL: String

    init() throws {
        shared = try sharedBed()
        wrongURL = "https://wrong.test:\(shared.originPort)/large/3"
    }

    private var refusal: String {
        "pinproxy: wrong.test:\(shared.originPort): Certificate pinning failure for wrong.test"
    }

    /// A curl that uses the proxy without the token.
    private func plainCurl(_ url: String) -> String { "curl -s -o /dev/null -x \(shared.proxy.url) \(url)" }

    /// The programs and how to run them. `$SITE` is the URL; `$HOST` and `$PROXY` have the form `host:port`.
    static let programs: [(path: String, script: String)] = [
        ("/usr/bin/curl", #"curl -sS -x "http://$PROXY" "$SITE""#),
        ("/usr/bin/openssl", #"openssl s_client -proxy "$PROXY" -connect "$HOST" -servername wrong.test </dev/null"#),
        ("/usr/bin/lftp", #"lftp -c "set net:max-retries 1; cat $SITE""#),
        ("/usr/bin/w3m", #"! w3m -dump "$SITE" 2>&1 | grep "Can't load""#),
        (
            "/usr/bin/svn",
            #"svn info --non-interactive --config-dir . --config-option "servers:global:http-proxy-host=${PROXY%:*}" "#
                + #"--config-option "servers:global:http-proxy-port=${PROXY#*:}" "$SITE""#
        ),
        (
            "/usr/bin/chromium",
            #"! chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$PWD" "#
                + #"--dump-dom "$SITE" "#
                + #"2>&1 | grep ERR_TUNNEL_CONNECTION_FAILED"#
        ),
    ]

    @Test(arguments: programs) func whyAProgramWasRefused(path: String, script: String) async throws {
        guard FileManager.default.isExecutableFile(atPath: path) else { return }
        // Short, because Chromium puts a socket in it.
        let place = bed.path("p\(UInt32.random(in: 0...UInt32.max))")
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        let run = try await bed.exec(
            environment: [
                "HOME": place, "TMPDIR": place, "SITE": wrongURL, "HOST": "wrong.test:\(shared.originPort)",
                "PROXY": "127.0.0.1:\(shared.proxy.port)",
            ], "/bin/sh", "-ec", "cd \"$0\"; \(script)", place)
        #expect(!run.succeeded, "\(run)")
        // Chromium also makes requests to Google's hosts.
        let told = run.told.filter { $0.contains("wrong.test") }
        #expect(told.count == 1 && told.first?.hasPrefix(refusal) == true, "\(run)")
    }

    /// In a container `pinproxy exec` may be the first process.
    @Test(.enabled(if: getuid() == 0, "needs root, to make a namespace of processes")) func asTheFirstProcess()
        async throws
    {
        let run = try await bed.run(
            ["unshare", "--pid", "--fork", "--mount-proc"] + bed.execArguments([], ["sh", "-c", plainCurl(wrongURL)]),
            environment: ProxyProcess.environment(in: bed))
        #expect(run.told.count == 1 && run.told.first?.hasPrefix(refusal) == true, "\(run)")
    }

    /// lynx drops the port of a URL with a name and a password.
    @Test func lynxGetsAURLThatItCanRead() async throws {
        try bed.file("bin/lynx", "#!/bin/sh\necho $https_proxy\n\(plainCurl(wrongURL))\n", mode: 0o755)
        for run in [
            try await bed.exec(bed.path("bin/lynx")),
            try await bed.exec(options: ["--plain-url"], "sh", bed.path("bin/lynx")),
        ] {
            #expect(run.output == shared.proxy.url, "\(run)")
            #expect(run.told.count == 1 && run.told.first?.hasPrefix(refusal) == true, "\(run)")
        }
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/lynx") else { return }
        let run = try await bed.exec("lynx", "-dump", "http://denied.test/")
        #expect(run.told.count == 1 && run.told.first?.hasPrefix("pinproxy: denied.test:80: ") == true, "\(run)")
    }

    /// A client that doesn't trust the authority has left before the proxy knows why.
    @Test func aClientThatDoesNotTrustTheAuthority() async throws {
        let url = "https://right.test:\(shared.originPort)/"
        let run = try await bed.exec(
            options: ["--no-trust"], "sh", "-c", plainCurl(url) + " --cacert /etc/ssl/certs/ca-certificates.crt")
        #expect(run.told.count == 1, "\(run)")
        #expect(
            run.told.first?.contains("right.test:\(shared.originPort): the client's TLS handshake failed") == true,
            "\(run)")
    }

    /// A proxy that was used, however briefly, is not reported as bypassed.
    @Test func aProgramThatUsedTheProxyIsNotSaidToHaveGoneRoundIt() async throws {
        let tunnel = try await bed.exec("sh", "-c", plainCurl("https://right.test:\(shared.originPort)/large/3"))
        #expect(tunnel.succeeded && tunnel.errors.isEmpty, "\(tunnel)")
        let plain = try await bed.exec("sh", "-c", plainCurl("http://right.test:\(shared.secondOriginPort)/large/3"))
        #expect(plain.succeeded && plain.errors.isEmpty, "\(plain)")
    }

    /// Traffic that the proxy couldn't read has still reached it.
    @Test func aProgramThatSpeaksTLSToThePlainPort() async throws {
        let run = try await bed.exec(
            "sh", "-c", "curl -sk --proxy-insecure -x https://127.0.0.1:\(shared.proxy.port) https://right.test/")
        #expect(run.told.count == 1 && run.told.first?.contains("proxy.tls") == true, "\(run)")
    }

    /// A background process has a new parent once its own has exited.
    @Test func whatRunsInTheBackground() async throws {
        let script = """
            (setsid sh -c 'until [ -e parent-gone ]; do sleep 0.02; done; \(plainCurl(wrongURL)); touch \
            background-done' &)
            touch parent-gone; until [ -e background-done ]; do sleep 0.02; done
            """
        let run = try await bed.exec("sh", "-c", "cd \(bed.directory); \(script)")
        #expect(run.succeeded && run.told.count == 1 && run.told.first?.hasPrefix(refusal) == true, "\(run)")
    }

    @Test func theDoorOfACommandsOwnNetwork() async throws {
        guard IsolationBed.isAvailable else { return }
        let run = try await bed.exec(options: ["--isolated"], "sh", "-c", plainCurl(wrongURL))
        #expect(run.told.count == 1 && run.told.first?.hasPrefix(refusal) == true, "\(run)")
    }

    // MARK: Attribution

    /// Two runs of one user, and a program of that user outside both.
    @Test func eachIsToldItsOwnAlone() async throws {
        let folder = bed.path("two-\(UUID())")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        func start(_ name: String, _ url: String) async throws -> ChildProcess {
            let script =
                "touch \(folder)/\(name); until [ -e \(folder)/go ]; do sleep 0.02; done; \(plainCurl(url)); true"
            return try await bed.start(
                bed.execArguments([], ["sh", "-c", script]), environment: ProxyProcess.environment(in: bed))
        }
        let (wrong, denied) = (try await start("wrong", wrongURL), try await start("denied", "https://denied.test/"))
        try await eventually("both") {
            ["wrong", "denied"].allSatisfy { FileManager.default.fileExists(atPath: "\(folder)/\($0)") }
        }
        let other = try await bed.run(["sh", "-c", plainCurl("https://denied.test:1/")])
        #expect(other.ending == .exited(56), "\(other)")
        try Data().write(to: URL(fileURLWithPath: "\(folder)/go"))
        for process in [wrong, denied] { #expect(try await process.ending() == .exited(0)) }
        let told = (await wrong.errors.text, await denied.errors.text)
        #expect(told.0.hasPrefix(refusal) && !told.0.contains("\n"), "\(told)")
        #expect(
            told.1.hasPrefix("pinproxy: denied.test: denied.test:443 denied by policy") && !told.1.contains("\n"),
            "\(told)")
    }

    /// As with a token, the inner run's refusals are not reported to the outer one.
    @Test func aRunWithinARun() async throws {
        let inner = bed.execArguments([], ["sh", "-c", plainCurl(wrongURL)])
        let run = try await bed.run(
            bed.execArguments(["--explain-refusals", "live"], inner), environment: ProxyProcess.environment(in: bed))
        #expect(run.told.count == 2 && run.told.first?.hasPrefix(refusal) == true, "\(run)")
        #expect(run.told.last?.contains("sent nothing through the proxy as this run") == true, "\(run)")
    }

    /// A run learns nothing about another user's connections, even if its own process became that user.
    @Test(.enabled(if: getuid() == 0, "needs root, to be another user")) func anotherUsersConnectionIsNotToldOf()
        async throws
    {
        let stranger = IsolationBed.asNobody.joined(separator: " ")
        let run = try await bed.exec("sh", "-c", "\(stranger) \(plainCurl(wrongURL)); true")
        #expect(run.succeeded && run.told.count == 1, "\(run)")
        #expect(run.told.first?.contains("sent nothing through the proxy as this run") == true, "\(run)")
    }

    // MARK: proxy.users

    @Test func aProgramThatSendsNoPasswordIsSaid() async throws {
        try await withTestBed { bed in
            try await AuthenticationBed.usersFile(in: bed, folder: "proxy")
            let port = try ListeningSocket().port
            let shared = try await OriginBed.prepare(
                bed, sections: ["proxy": ["users: users", "listen: 127.0.0.1:\(port)"]])
            let curl = "curl -s -o /dev/null -w '%{http_connect} ' -x \(shared.proxy.url)"
            let none = try await bed.exec("sh", "-c", "\(curl) \(shared.url)/; \(curl) \(shared.url)/; true")
            #expect(none.output == "407 407 ", "\(none)")
            let said =
                """
                pinproxy: \(shared.authority): the proxy requires a user name and a password (proxy.users), and the \
                program sent none (2 times)
                """
            #expect(none.told.count == 1 && none.told.first?.hasPrefix(said) == true, "\(none)")

            // A client that sends them on request, on the same connection or on another.
            let asked = try await bed.exec(
                "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--proxy-anyauth", "\(shared.url)/large/3")
            #expect(asked.output == "200" && asked.errors.isEmpty, "\(asked)")
            let later = try await bed.exec(
                "sh", "-c", "\(curl) \(shared.url)/; curl -s -o /dev/null \(shared.url)/large/3")
            #expect(later.succeeded && later.errors.isEmpty, "\(later)")
        }
    }

    /// Answering yes grants no access, even from a run of the proxy's own user.
    @Test func aRunThatSaysYesToEverythingLetsNobodyIn() async throws {
        try await withTestBed { bed in
            try await AuthenticationBed.usersFile(in: bed, folder: "proxy")
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["users: users"]])
            let run = try await RawRun(in: bed)
            async let answer = shared.proxy.connect(to: shared.authority)
            try await run.answer(try await run.question(), true)
            #expect(try await answer.status == 407)
        }
    }

    // MARK: Runs that misbehave

    /// A run that claims all of its user's connections gets their refusals, and no others.
    @Test func aYesIsBelievedOfTheUsersOwnConnectionsAlone() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts: [{match: '*.denied.test', action: deny}]\n", trust: nil)
            let run = try await RawRun(in: bed)
            if getuid() == 0 {
                let other = try await bed.run(
                    IsolationBed.asNobody + [
                        "curl", "-s", "-o", "/dev/null", "-x", proxy.url, "https://other.denied.test/",
                    ])
                #expect(other.ending == .exited(56), "\(other)")
            }
            async let answer = proxy.connect(to: "own.denied.test:443")
            let question = try await run.question()
            #expect(question.number == 1)
            try await run.answer(question, true)
            #expect(try await answer.status == 403)
            #expect(try await run.line().contains("own.denied.test"))
        }
    }

    /// An unanswered question is waited for once. Later ones don't wait.
    @Test func aRunThatDoesNotAnswerIsAskedOnce() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts: [{match: '*.denied.test', action: deny}]\n", trust: nil)
            let run = try await RawRun(in: bed)
            for _ in 0..<3 { #expect(try await proxy.connect(to: "silent.denied.test:443").status == 403) }
            let question = try await run.question()
            // It is asked again after it has answered, late.
            try await run.answer(question, true)
            let asking = Task { () async throws -> Void in
                repeat {
                    let answer = try await proxy.connect(to: "late.denied.test:443")
                    #expect(answer.status == 403)
                } while !Task.isCancelled
            }
            let next = try await run.question()
            #expect(next.number == question.number + 1)
            asking.cancel()
            try await run.answer(next, true)
            try await asking.value
            let told = try await run.line()
            #expect(told.contains("late.denied.test") && !told.contains("silent"), "\(told)")
            try await run.connection.finishSending()
            let rest = String(decoding: try await run.connection.receiveAll(), as: UTF8.self)
            #expect(rest.contains("\"requests\":1"), "\(rest)")
        }
    }

    /// A client that sends anything but an answer is dropped, and its run ends.
    @Test(arguments: [
        "x\n", "\n", "{}\n", "{\"number\":1,\"is_held\":true}\n", "{\"number\":-1,\"is_held\":true}\n",
        "{\"number\":18446744073709551616,\"is_held\":true}\n", "{\"is_held\":true}\n", "[1,true]\n",
        String(repeating: "[", count: 120) + "\n", String(repeating: "x", count: 1000), "\u{0}\u{FF}\n",
    ])
    func whatWasNotAskedIsTheEnd(line: String) async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let run = try await RawRun(in: bed)
            try await run.connection.send(line)
            let rest = String(decoding: try await run.connection.receiveAll(), as: UTF8.self)
            #expect(rest.contains("\"summary\""), "\(rest)")
            withExtendedLifetime(proxy) {}
        }
    }

    @Test func anAnswerCountsOnce() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts: [{match: '*.denied.test', action: deny}]\n", trust: nil)
            let run = try await RawRun(in: bed)
            async let answer = proxy.connect(to: "twice.denied.test:443")
            let question = try await run.question()
            try await run.answer(question, false)
            #expect(try await answer.status == 403)
            try await run.answer(question, true)
            let rest = String(decoding: try await run.connection.receiveAll(), as: UTF8.self)
            #expect(rest.contains("\"requests\":0") && !rest.contains("refusal\":"), "\(rest)")
        }
    }

    /// A request doesn't wait if its run ends while being asked.
    @Test func aRunThatEndsWhileItIsAsked() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts: [{match: '*.denied.test', action: deny}]\n", trust: nil)
            let run = try await RawRun(in: bed)
            async let answer = proxy.connect(to: "ended.denied.test:443")
            _ = try await run.question()
            try await run.connection.finishSending()
            #expect(try await answer.status == 403)
            let rest = String(decoding: try await run.connection.receiveAll(), as: UTF8.self)
            #expect(rest.contains("\"requests\":0"), "\(rest)")
        }
    }
}

/// A run without `pinproxy exec`: the test answers the proxy's questions.
private struct RawRun {
    struct Question: Decodable {
        let number: UInt64
        let socket: UInt64
    }

    let connection: RawConnection

    init(in bed: TestBed) async throws {
        connection = try RawConnection(path: bed.path("proxy/state/pinproxy/runs.sock"))
        let token = (0..<4).map { _ in String(UInt64.random(in: (1 << 60)...UInt64.max), radix: 16) }.joined()
        try await connection.send("POST /runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n\r\n")
        guard try await connection.response().status == 200 else { throw TestBedError("no run") }
        guard try await line().contains("\"begun\"") else { throw TestBedError("no first line") }
    }

    func line() async throws -> String {
        var bytes: [UInt8] = []
        while bytes.last != UInt8(ascii: "\n") {
            let some = try await connection.receive(atMost: 1)
            guard !some.isEmpty else { throw TestBedError("ended: \(String(decoding: bytes, as: UTF8.self))") }
            bytes += some
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    func question() async throws -> Question {
        let line = try await line()
        guard let question = try JSONDecoder().decode([String: Question].self, from: Data(line.utf8))["question"] else {
            throw TestBedError("no question: \(line)")
        }
        return question
    }

    func answer(_ question: Question, _ isHeld: Bool) async throws {
        try await connection.send("{\"is_held\":\(isHeld),\"number\":\(question.number)}\n")
    }
}
