import Testing

/// `Upgrade`: after 101 the bytes belong to the other protocol, both ways, until each side ends.
@Suite(.timeLimit(.minutes(5)))
struct WebSocketTests {
    @Test func aWebSocketLibraryTalksThroughTheProxy() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let chain = try roots.chain("socket.test")
            let origin = try await PythonPeer(
                in: bed, script: "websocket_origin.py",
                ["--certificate", try bed.file("s.pem", chain.pem), "--key", try bed.file("s.key", chain.keyPEM)],
                interpreter: PythonPeer.pythonWithPackages)
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: ["socket.test": "127.0.0.1"])
            let run = try await bed.run(
                [
                    PythonPeer.pythonWithPackages, PythonPeer.path("websocket_client.py"),
                    "wss://socket.test:\(origin.port)/",
                ], environment: proxy.clientEnvironment)
            #expect(run.output == "closed 1000", "\(run)")
        }
    }

    @Test func eachSideEndsForItself() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let connection = try RawConnection(to: shared.proxy)
            // Bytes right after the head belong to the new protocol.
            try await connection.send(
                "GET \(shared.plainURL)/upgrade HTTP/1.1\r\nHost: \(OriginBed.name):\(shared.secondOriginPort)\r\n"
                    + "Connection: Upgrade\r\nUpgrade: echo\r\n\r\nearly;")
            let answer = try await connection.response()
            #expect(answer.status == 101, "\(answer)")
            #expect(answer["Upgrade"] == "echo")
            #expect(answer["Connection"]?.lowercased().contains("upgrade") == true)
            try await connection.send("late;")
            try await connection.finishSending()
            let rest = String(decoding: try await connection.receiveAll(), as: UTF8.self)
            #expect(answer.body + rest == "early;late;bye\n")
        }
    }

    @Test func anUpgradeThatTheOriginDeclinesIsAnOrdinaryExchange() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let connection = try RawConnection(to: shared.proxy)
            for _ in 1...2 {
                try await connection.send(
                    "GET \(shared.plainURL)/large/3 HTTP/1.1\r\nHost: \(OriginBed.name):\(shared.secondOriginPort)\r\n"
                        + "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n")
                #expect(try await connection.response().status == 200)
            }
        }
    }
}
