import Foundation
import Testing

/// The control socket, with good and bad clients.
@Suite(.timeLimit(.minutes(5)), .sharedBed(OriginBed.prepare))
struct ControlSocketTests {
    private var tasks: TaskControl {
        get throws { try sharedBed().tasks }
    }

    // MARK: Answers

    @Test func itIsItsOwnersAlone() throws {
        let attributes = try FileManager.default.attributesOfItem(atPath: tasks.socket)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(attributes[.type] as? FileAttributeType == .typeSocket)
    }

    @Test func itTellsThatTheProxyLives() async throws {
        let health = try await tasks.ask("GET", "/healthz")
        #expect(health.status == 200 && health.body == #"{"status":"alive"}"#)
        #expect(health["content-type"] == "application/json")
        let readiness = try await tasks.ask("GET", "/readyz")
        #expect(readiness.status == 200 && readiness.body == #"{"status":"ready"}"#)
    }

    @Test func statusIsWhatTheCommandPrints() async throws {
        let shared = try sharedBed()
        let answer = try await shared.tasks.ask("GET", "/status")
        let status = try #require(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any])
        #expect(status["running"] as? Bool == true)
        #expect(status["process"] as? Int == Int(shared.proxy.process.identifier))
        #expect(status["configuration"] as? String == shared.bed.path("proxy/pinproxy.yaml"))
        #expect(status["listen"] as? [String] == ["127.0.0.1:\(shared.proxy.port)"])
        #expect(status["entries"] is [Any])
        let command = try await shared.tasks.pinproxy("status", "--json")
        let printed = try #require(try JSONSerialization.jsonObject(with: Data(command.output.utf8)) as? [String: Any])
        #expect(Set(printed.keys).isSuperset(of: status.keys), "\(command)")
        #expect(
            try await shared.tasks.pinproxy("status").output.contains(
                "running: process \(shared.proxy.process.identifier)"))
    }

    @Test(arguments: [
        ("GET", "/nix", 404), ("POST", "/tasks", 405), ("GET", "/reload", 405), ("DELETE", "/tasks/7", 405),
        ("GET", "/tasks/7/cancel", 405), ("GET", "/tasks/x", 400), ("GET", "/tasks/18446744073709551616", 400),
        ("GET", "/tasks/-1", 400), ("GET", "/tasks/0", 404), ("GET", "/tasks/18446744073709551615", 404),
        ("POST", "/tasks/7/explode", 404), ("POST", "/tasks/7/cancel/now", 404), ("POST", "/learn?until=soon", 400),
        ("POST", "/learn?until=1&stop", 400), ("POST", "/learn?forever", 400), ("GET", "http://localhost/status", 400),
        ("OPTIONS", "*", 400), ("GET", "/status?", 200), ("GET", "//tasks//", 200),
    ])
    func itSaysWhatItDoesNotKnow(_ method: String, _ target: String, _ status: Int) async throws {
        let answer = try await tasks.ask(method, target)
        #expect(answer.status == status, "\(answer)")
        #expect((answer["allow"] != nil) == (status == 405))
        #expect((try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]) != nil)
        if status >= 400 { #expect(answer.body.contains("\"cause\":\"")) }
    }

    @Test func itServesOneRequestAfterTheOther() async throws {
        let connection = try RawConnection(path: tasks.socket)
        let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        try await connection.send(request + request)
        for _ in 1...2 { #expect(try await connection.response().status == 200) }
        // A request with a body is answered, and the connection is then closed.
        try await connection.send("POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello" + request)
        #expect(try await connection.response().status == 200)
        try await connection.end()
    }

    // MARK: Misuse

    @Test(arguments: [
        "\u{1}\u{2}\r\n\r\n", "\r\n\r\n\r\nx\r\n\r\n", "GET /status\r\n\r\n", "GET /status HTTP/1.1\r\n\r\n",
        "GET /status HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST /reload HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        "GET /status HTTP/9.1\r\nHost: a\r\n\r\n",
    ])
    func garbageIsAnsweredAndEnds(_ bytes: String) async throws {
        let connection = try RawConnection(path: tasks.socket)
        try await connection.send(bytes)
        let answer = try await connection.response()
        #expect((400...505).contains(answer.status), "\(answer)")
        try await connection.finishSending()
        try await connection.end()
        #expect(try await tasks.ask("GET", "/healthz").status == 200)
    }

    @Test func aHeadThatIsTooLongIsRefused() async throws {
        let connection = try RawConnection(path: tasks.socket)
        try await connection.send("GET /" + String(repeating: "x", count: 20_000))
        #expect(try await connection.response().status == 431)
    }

    /// Half a request keeps its place for ten seconds. A client that leaves leaves nothing behind.
    @Test func halfARequestIsGivenUp() async throws {
        let connection = try RawConnection(path: tasks.socket)
        try await connection.send("GET /status HTT")
        #expect(try await connection.response().status == 408)
        try await connection.end()
        for part in ["", "G", "GET /tasks HTTP/1.1\r\nHost: a\r\n"] {
            try await RawConnection(path: tasks.socket).send(part)
        }
        #expect(try await tasks.ask("GET", "/healthz").status == 200)
    }

    @Test func whoNeverReadsIsGivenUp() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let tasks = TaskControl(bed: bed, proxy: proxy)
            let before = try proxy.openDescriptors()
            let connection = try RawConnection(path: tasks.socket)
            let many = String(repeating: "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 20_000)
            let sending = Task { try? await connection.send(many) }
            try await eventually("its connection to be there") { try proxy.openDescriptors() > before }
            // Others are served meanwhile.
            for _ in 1...20 { #expect(try await tasks.ask("GET", "/healthz").status == 200) }
            try await eventually("its connection to be gone") { try proxy.openDescriptors() == before }
            _ = await sending.value
        }
    }

    @Test func whoGoesInTheMiddleOfAnAnswerLeavesNothing() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let tasks = TaskControl(bed: bed, proxy: proxy)
            let before = try proxy.openDescriptors()
            let many = String(repeating: "GET /tasks HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 200)
            for _ in 1...50 {
                let connection = try RawConnection(path: tasks.socket)
                try await connection.send(many)
                _ = try await connection.receive(atMost: 7)
            }
            #expect(try await tasks.ask("GET", "/healthz").status == 200)
            try await eventually("the connections to be gone") { try proxy.openDescriptors() == before }
        }
    }

    /// A crowd of silent connections does not keep a client out.
    @Test func aThousandConnectionsKeepNobodyOut() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let tasks = TaskControl(bed: bed, proxy: proxy)
            let before = try proxy.openDescriptors()
            var crowd: [RawConnection] = []
            for number in 1...1000 {
                let connection = try RawConnection(path: tasks.socket)
                if number.isMultiple(of: 2) { try? await connection.send("GET /st") }
                if number > 900 { crowd.append(connection) }
                if number.isMultiple(of: 100) { #expect(try await tasks.ask("GET", "/healthz").status == 200) }
            }
            try await eventually("most to be gone") { try proxy.openDescriptors() <= before + 66 }
            #expect(try await tasks.pinproxy("tasks").succeeded)
            crowd = []
            try await eventually("the connections to be gone") { try proxy.openDescriptors() == before }
        }
    }

    // MARK: Its name

    @Test func aDeadProxysSocketIsReplacedAndItsOwnIsRemoved() async throws {
        try await withTestBed { bed in
            let first = try await ProxyProcess(in: bed, trust: nil)
            let tasks = TaskControl(bed: bed, proxy: first)
            await first.process.stop()
            #expect(FileManager.default.fileExists(atPath: tasks.socket))
            let refused = try await tasks.pinproxy("tasks")
            #expect(refused.ending == .exited(1) && refused.errors.contains("no proxy is running"), "\(refused)")
            let second = try await ProxyProcess(in: bed, trust: nil)
            #expect(try await tasks.ask("GET", "/healthz").status == 200)
            second.process.send(signal: SIGTERM)
            #expect(try await second.process.ending() == .exited(0))
            #expect(!FileManager.default.fileExists(atPath: tasks.socket))
        }
    }

    @Test func whatIsNoSocketStaysAndTheProxyServes() async throws {
        try await withTestBed { bed in
            try bed.file("proxy/state/pinproxy/control.sock", "mine")
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let warning = try await proxy.events.first("control.failed")
            #expect(warning["cause"]?.contains("control.sock exists and is not a socket") == true, "\(warning)")
            let tasks = TaskControl(bed: bed, proxy: proxy)
            let run = try await tasks.pinproxy("reload")
            #expect(run.ending == .exited(1), "\(run)")
            #expect(
                run.errors.contains("process \(proxy.process.identifier)") && run.errors.contains("control.sock"),
                "\(run)")
            #expect(try await proxy.reload().name == "config.reload")
            #expect(try bed.contents("proxy/state/pinproxy/control.sock") == "mine")
            let status = try await tasks.pinproxy("status")
            #expect(status.succeeded && status.output.contains("running: process"), "\(status)")
        }
    }

    /// A socket address holds 107 bytes.
    @Test func aLongStateDirectoryIsNoHindrance() async throws {
        try await withTestBed { bed in
            let long = bed.path("proxy/" + String(repeating: "long/", count: 40))
            try FileManager.default.createDirectory(atPath: long, withIntermediateDirectories: true)
            let proxy = try await ProxyProcess(in: bed, trust: nil, environment: ["XDG_STATE_HOME": long])
            let run = try await bed.run(
                [ProxyProcess.executable, "tasks", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ["XDG_STATE_HOME": long])
            #expect(run.succeeded && run.output == "no task is in flight", "\(run)")
            proxy.process.send(signal: SIGTERM)
            _ = try await proxy.process.ending()
            #expect(!FileManager.default.fileExists(atPath: long + "pinproxy/control.sock"))
        }
    }

    /// The socket's permissions keep other users out. If they were relaxed, the kernel's peer credentials do.
    @Test(.enabled(if: getuid() == 0, "needs root, to be another user")) func othersAreRefused() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let tasks = TaskControl(bed: bed, proxy: proxy)
            let program = """
                import socket, sys
                s = socket.socket(socket.AF_UNIX)
                try:
                    s.connect(sys.argv[1])
                except PermissionError:
                    print("denied")
                    sys.exit()
                try:
                    s.sendall(b"GET /tasks HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
                except BrokenPipeError:
                    pass
                print(s.recv(65536).decode())
                """
            let other = [
                "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", PythonPeer.python, "-c", program,
                tasks.socket,
            ]
            chmod(bed.directory, 0o755)
            #expect(try await bed.run(other).output == "denied")
            chmod(tasks.socket, 0o666)
            for folder in ["proxy", "proxy/state", "proxy/state/pinproxy"] { chmod(bed.path(folder), 0o755) }
            let refused = try await bed.run(other)
            #expect(refused.output.hasPrefix("HTTP/1.1 403 "), "\(refused)")
            #expect(
                refused.output.contains("user 65534") && refused.output.contains("its own user and root"), "\(refused)")
            let event = try await proxy.events.first("control.refused")
            #expect(event["cause"]?.contains("user 65534") == true, "\(event)")
            #expect(try await tasks.ask("GET", "/healthz").status == 200)
        }
    }
}
