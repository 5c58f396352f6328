import Foundation
import Testing

/// What `pinproxy tasks` shows.
@Suite(.timeLimit(.minutes(5)))
struct TaskListTests {
    /// Opens the given number of connections, with a request on each. Once connected to, it closes half of them one by
    /// one.
    private static let crowd = """
        import json, resource, socket, sys
        port, count, url, host = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
        resource.setrlimit(resource.RLIMIT_NOFILE, (count + 64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        clients = []
        for number in range(count):
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(f"GET {url}/silent HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
            clients.append(client)
        server = socket.create_server(("127.0.0.1", 0))
        print(json.dumps({"event": "ready", "port": server.getsockname()[1]}), flush=True)
        server.accept()
        for client in clients[::2]:
            client.close()
        for client in clients[1::2]:
            while client.recv(65536): pass
        print(json.dumps({"event": "over"}), flush=True)
        """

    /// Half of the tasks end because their clients leave, the others because they are cancelled. A list meanwhile has
    /// no task twice.
    @Test func aThousandAreListedWhileAThousandEnd() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let count = 1000
            let clients = try await bed.start(
                [
                    PythonPeer.python, "-u", "-c", Self.crowd, "\(shared.proxy.port)", "\(count)", shared.plainURL,
                    "\(OriginBed.name):\(shared.secondOriginPort)",
                ], mergingErrors: true)
            let events = EventLog(lines: clients.output)
            let port = try #require(try await events.first("ready")["port"].flatMap { UInt16($0) })
            var listed: [TaskControl.Summary] = []
            try await eventually("\(count) tasks") {
                listed = try await shared.tasks.list()
                return listed.count == count && listed.allSatisfy { $0.phase == "waiting for the response" }
            }
            #expect(Set(listed.map(\.id)).count == count)
            #expect(listed.map(\.id) == listed.map(\.id).sorted())
            #expect(listed.allSatisfy { $0.path == "/silent" && $0.method == "GET" && $0.transactions.count == 1 })
            let table = try await shared.tasks.pinproxy("tasks")
            #expect(table.output.split(separator: "\n").count == count + 1)

            let go = try RawConnection(port: port)
            let known = Set(listed.map(\.id))
            let ending = Task { [tasks = shared.tasks] in
                for id in known.sorted() { _ = try await tasks.ask("POST", "/tasks/\(id)/cancel") }
            }
            var rounds = 0
            while true {
                let now = try await shared.tasks.list().map(\.id)
                #expect(Set(now).count == now.count && known.isSuperset(of: now))
                if now.isEmpty { break }
                rounds += 1
            }
            #expect(rounds > 0)
            try await ending.value
            _ = try await events.first("over")
            withExtendedLifetime(go) {}
            try await eventually("a line of each") {
                Set(shared.proxy.events.all("exchange").compactMap { $0["task"].flatMap { Int($0) } }).isSuperset(
                    of: known)
            }
            #expect(shared.proxy.events.all("exchange").count == count)
        }
    }

    /// One record: what `tasks show` said of a task is what the access log says of it.
    @Test func theLogSaysWhatWasShown() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await bed.start(
                ["curl", "-sS", "--fail", "\(shared.url)/hold/it?secret=1"], environment: shared.proxy.clientEnvironment
            )
            let task = try await shared.tasks.only { $0.kind == "exchange" && $0.bytesDown > 0 }
            let shown = try #require(task.transactions.first)
            #expect(task.path == "/hold/it" && task.status == 200 && task.totalDown == 12 && task.totalUp == nil)
            #expect(shown.networkProtocol == "http/1.1" && !shown.reused && shown.lastByte == nil)
            #expect(shown.remoteAddress == "127.0.0.1:\(shared.originPort)")
            #expect(try #require(shown.requestSent) <= shown.firstByte!)
            let text = try await shared.tasks.pinproxy("tasks", "show", "\(task.id)")
            for part in [
                "task \(task.id): exchange, running, receiving the response",
                "GET origin.test:\(shared.originPort)/hold/it",
                "of a body of 12 B", "127.0.0.1:\(shared.originPort), http/1.1, a new connection", "TLS took",
                "first byte at",
            ] { #expect(text.output.contains(part), "\(text)") }
            #expect(!text.output.contains("secret"))
            let table = try await shared.tasks.pinproxy("tasks", "list")
            #expect(table.output.contains("[") && table.output.contains("%"), "\(table)")
            let list = try await shared.tasks.pinproxy("tasks", "--json")
            #expect(list.output.contains("\"silent_workers\" : ["), "\(list)")
            let cancelled = try await shared.tasks.pinproxy("tasks", "cancel", "\(task.id)")
            #expect(
                cancelled.output == "cancelled: task \(task.id), GET origin.test:\(shared.originPort)/hold/it",
                "\(cancelled)")
            _ = try await client.ending()
            let line = try await shared.proxy.events.first("exchange") { $0["task"] == "\(task.id)" }
            #expect(line["address"] == shown.remoteAddress && line["local"] == shown.localAddress)
            for (field, seconds) in [
                ("lookup", shown.nameLookup), ("connect", shown.connect), ("tls", shown.tls),
                ("request", shown.requestSent),
                ("first_byte", shown.firstByte),
            ] {
                let logged = try #require(line[field].flatMap { Double($0) })
                #expect(abs(logged - seconds!) < 0.000_002, "\(field)")
            }
            #expect(line["bytes_down"] == "\(task.bytesDown)")
        }
    }

    /// Each attempt is a separate transaction.
    @Test func aRetryIsATransactionOfItsOwn() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let run = try await shared.curl("\(shared.url)/echo", "\(shared.url)/die-when-reused")
            #expect(run.succeeded, "\(run)")
            let line = try await shared.proxy.events.first("exchange") { $0["path"] == "/die-when-reused" }
            #expect(line["retried"]?.contains("reused") == true, "\(line)")
            #expect(line["reused"] == "0" || line["reused"] == "false", "\(line)")
        }
    }

    @Test func errorsSayWhatToDo() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let tasks = TaskControl(bed: bed, proxy: proxy)
            for arguments in [["show", "7"], ["cancel", "7"], ["suspend", "7", "--json"], ["resume", "7"]] {
                let run = try await bed.run(
                    [ProxyProcess.executable, "tasks"] + arguments + ["--config", bed.path("proxy/pinproxy.yaml")],
                    environment: ProxyProcess.environment(in: bed))
                #expect(run.ending == .exited(1) && run.output.isEmpty, "\(run)")
                #expect(run.errors == "pinproxy: no task 7 is in flight", "\(run)")
            }
            for arguments in [["show"], ["show", "x"], ["explode", "7"], ["list", "--json", "--watch"]] {
                let run = try await bed.run(
                    [ProxyProcess.executable, "tasks"] + arguments, environment: ProxyProcess.environment(in: bed))
                #expect(run.ending == .exited(2), "\(run)")
            }
            #expect(try await tasks.pinproxy("tasks").output == "no task is in flight")
            proxy.process.send(signal: SIGTERM)
            _ = try await proxy.process.ending()
            let run = try await tasks.pinproxy("tasks")
            #expect(
                run.ending == .exited(1) && run.errors.contains("no proxy is running with the state directory"),
                "\(run)")
        }
    }
}
