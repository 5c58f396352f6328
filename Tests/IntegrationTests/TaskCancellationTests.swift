import Foundation
import Testing

/// A cancelled task: both sides end, no peer takes a part for the whole, and the log says who cancelled it.
@Suite(.timeLimit(.minutes(5)))
struct TaskCancellationTests {
    private func expectCancelled(_ shared: SharedBed, _ id: Int) async throws {
        let line = try await shared.proxy.events.first("exchange") { $0["task"] == "\(id)" }
        #expect(line["cause"]?.hasPrefix("cancelled by ") == true, "\(line)")
        #expect(line["cause"]?.contains("user \(getuid())") == true, "\(line)")
        let event = try await shared.proxy.events.first("task.cancel") { $0["task"] == "\(id)" }
        #expect(event["cause"] == line["cause"])
        #expect(try await shared.tasks.ask("POST", "/tasks/\(id)/cancel").status == 404)
    }

    /// How a program sees a response that is cut, whatever delimits the response.
    @Test(arguments: [true, false]) func aResponseWithALengthIsSeenToBeCut(overTLS: Bool) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await bed.start(
                [
                    "curl", "-sS", "--max-time", "120", "-o", "/dev/null",
                    (overTLS ? shared.url : shared.plainURL) + "/hold/it",
                ],
                environment: shared.proxy.clientEnvironment)
            let task = try await shared.tasks.only { $0.bytesDown > 0 && $0.kind == "exchange" }
            #expect(task.totalDown == 12)
            try await shared.tasks.order("cancel", task.id)
            let ending = try await client.ending()
            #expect(ending == .exited(18) || ending == .exited(56), "\(ending)")
            try await expectCancelled(shared, task.id)
            let origin = try #require(overTLS ? shared.origin : shared.plainOrigin)
            try await eventually("the origin's side to be gone") {
                try shared.proxy.openSockets(to: origin.port) == 0
            }
        }
    }

    /// In chunks, and to the connection's end: over TLS without close_notify, in the clear by a reset.
    @Test(arguments: ["chunked", "close"]) func aResponseWithoutALengthIsSeenToBeCut(_ framing: String) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let raw = try await RawOrigin.start(
                in: bed,
                answer: framing == "chunked"
                    ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
                    : "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
            // An HTTP/1.0 client can't get chunks: the connection's close ends the body.
            let connection = try RawConnection(to: shared.proxy)
            let version = framing == "chunked" ? "1.1" : "1.0"
            try await connection.send(
                """
                GET http://\(OriginBed.name):\(raw.port)/ HTTP/\(version)\r\nHost: \
                \(OriginBed.name):\(raw.port)\r\n\r\n
                """
            )
            var received: [UInt8] = []
            while received.suffix(framing == "chunked" ? 7 : 5)
                != (framing == "chunked" ? Array("hello\r\n".utf8) : Array("hello".utf8))[...]
            {
                received += try await connection.receive(atMost: 1)
            }
            let task = try await shared.tasks.only()
            try await shared.tasks.order("cancel", task.id)
            let (rest, wasReset) = try await connection.receiveUntilCut()
            #expect(rest.isEmpty, "\(String(decoding: rest, as: UTF8.self))")
            #expect(wasReset == (framing == "close"))
            try await expectCancelled(shared, task.id)
        }
    }

    /// A client without a response yet gets an error. It would take a mere close for an accident, and retry.
    @Test func aClientThatWaitsIsTold() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let client = try await bed.start(
                [
                    "curl", "-sS", "--max-time", "120", "-w", "%{http_code}", "\(shared.url)/echo",
                    "\(shared.url)/silent",
                ],
                environment: shared.proxy.clientEnvironment)
            _ = try await #require(shared.origin).events.first("silent")
            let task = try await shared.tasks.only()
            #expect(task.path == "/silent" && task.transactions.first?.reused == true)
            #expect(try await shared.tasks.order("cancel", task.id).state == "completed")
            _ = try await client.ending()
            let text = await client.output.text
            #expect(text.hasSuffix("403") && text.contains("cancelled by"), "\(text)")
            try await expectCancelled(shared, task.id)
            #expect(shared.origin?.events.all("silent").count == 1)
        }
    }

    @Test func aConnectThatWaitsIsTold() async throws {
        try await withTestBed { bed in
            // The kernel accepts the connection, but no server answers the TLS handshake.
            let listener = try ListeningSocket()
            let shared = try await OriginBed.prepare(bed)
            let connection = try RawConnection(to: shared.proxy)
            let authority = "\(OriginBed.name):\(listener.port)"
            try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            let task = try await shared.tasks.only { $0.phase == "connecting" }
            try await shared.tasks.order("suspend", task.id)
            try await shared.tasks.order("cancel", task.id)
            #expect(try await connection.response().status == 403)
            try await expectCancelled(shared, task.id)
            try await eventually("the origin's side to be gone") {
                try shared.proxy.openSockets(to: listener.port) == 0
            }
        }
    }

    /// While it runs and while it is suspended.
    @Test(arguments: [false, true]) func aTunnelIsReset(whileSuspended: Bool) async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, pins: "defaults: {action: tunnel}\n")
            let connection = try RawConnection(to: shared.proxy)
            let authority = "\(OriginBed.name):\(shared.secondOriginPort)"
            try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            #expect(try await connection.response().status == 200)
            let task = try await shared.tasks.only { $0.phase == "relaying" }
            if whileSuspended { try await shared.tasks.order("suspend", task.id) }
            try await shared.tasks.order("cancel", task.id)
            #expect(try await connection.receiveUntilCut().wasReset)
            try await expectCancelled(shared, task.id)
            _ = try await #require(shared.plainOrigin).events.first("closed")
        }
    }

    @Test func aTunnelThatIsVerifiedAndAnInterceptionAreCut() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, pins: "hosts:\n  - match: tunnel.test\n    action: verify-tunnel\n",
                hosts: ["tunnel.test": "127.0.0.1"])
            for (host, phase) in [
                ("tunnel.test", "verifying the tunnel"), (OriginBed.name, "TLS handshake with the client"),
            ] {
                let connection = try RawConnection(to: shared.proxy)
                let authority = "\(host):\(shared.originPort)"
                try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
                #expect(try await connection.response().status == 200)
                let task = try await shared.tasks.only { $0.phase == phase }
                try await shared.tasks.order("cancel", task.id)
                try await connection.end()
                try await expectCancelled(shared, task.id)
            }
        }
    }

    /// Suspended, full of bytes, its client not reading: cancelled all the same.
    @Test func aSuspendedDownloadWithBytesOnTheWayIsCut() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let connection = try RawConnection(to: shared.proxy)
            let host = "\(OriginBed.name):\(shared.secondOriginPort)"
            try await connection.send("GET \(shared.plainURL)/large/50000000 HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            let task = try await shared.tasks.only { $0.bytesDown > 100_000 }
            try await shared.tasks.order("suspend", task.id)
            try await shared.tasks.order("cancel", task.id)
            let (bytes, _) = try await connection.receiveUntilCut()
            #expect(bytes.count < 50_000_000)
            try await expectCancelled(shared, task.id)
        }
    }

    /// The connection that arrived for a suspended CONNECT is closed with it, and never reaches a later CONNECT.
    @Test func aSuspendedConnectLeavesNoConnection() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let origin = try #require(shared.origin)
            let connection = try RawConnection(to: shared.proxy)
            func ask(_ authority: String) async throws {
                try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            }
            origin.process.send(signal: SIGSTOP)
            try await ask(shared.authority)
            let task = try await shared.tasks.only { $0.phase == "connecting" }
            try await shared.tasks.order("suspend", task.id)
            origin.process.send(signal: SIGCONT)
            _ = try await origin.events.first("connection")
            try await shared.tasks.order("cancel", task.id)
            let answer = try await connection.response()
            #expect(answer.status == 403, "\(answer)")
            // The client's own connection stays open, but what it got by the CONNECT ends.
            try await eventually("the origin's connection to be closed") {
                try shared.proxy.openSockets(to: origin.port) == 0
            }
            try await connection.end()
        }
    }
}

/// An origin that sends a given text to every client, and then stays silent.
struct RawOrigin {
    let port: UInt16

    static func start(in bed: TestBed, answer: String) async throws -> RawOrigin {
        let encoded = Data(answer.utf8).base64EncodedString()
        let program = """
            import base64, json, socket, threading
            server = socket.create_server(("127.0.0.1", 0))
            print(json.dumps({"event": "ready", "port": server.getsockname()[1]}), flush=True)
            held = []
            while True:
                connection, _ = server.accept()
                held.append(connection)
                connection.recv(65536)
                connection.sendall(base64.b64decode("\(encoded)"))
            """
        let process = try await bed.start([PythonPeer.python, "-u", "-c", program], mergingErrors: true)
        guard let port = try await EventLog(lines: process.output).first("ready")["port"].flatMap({ UInt16($0) }) else {
            throw TestBedError("no port")
        }
        return RawOrigin(port: port)
    }
}
