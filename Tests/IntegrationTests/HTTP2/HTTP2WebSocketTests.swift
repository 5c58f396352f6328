import Testing

/// WebSocket over HTTP/2 (RFC 8441) on either side, translated to and from the Upgrade of HTTP/1.1.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2WebSocketTests {
    enum Origin: String, CaseIterable, Sendable {
        case http1, http2
    }

    private func prepare(_ bed: TestBed, _ origin: Origin, pins: String = "hosts: []\n") async throws -> SharedBed {
        let roots = try TestRoots()
        let chain = try roots.chain("socket.test")
        let peer: PythonPeer
        switch origin {
        case .http2: peer = try await PythonPeer.http2Origin(in: bed, chain: chain, ["--websocket"])
        case .http1:
            peer = try await PythonPeer(
                in: bed, script: "websocket_origin.py",
                ["--certificate", try bed.file("s.pem", chain.pem), "--key", try bed.file("s.key", chain.keyPEM)],
                interpreter: PythonPeer.pythonWithPackages)
        }
        let proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: roots.write(to: bed), hosts: ["socket.test": "127.0.0.1"],
            sections: AdminClient.section.merging(["proxy": ["workers: 1"]]) { $1 })
        return SharedBed(bed: bed, proxy: proxy, originPort: peer.port, origin: peer, ports: ["socket.test": peer.port])
    }

    private func talk(_ shared: SharedBed, overHTTP2: Bool, _ options: [String] = []) async throws -> Run {
        let authority = shared.authority(of: "socket.test")
        let arguments =
            overHTTP2
            ? [
                "http2_websocket_client.py", "--proxy", "\(shared.proxy.port)", "--ca", shared.proxy.authority,
                "--authority", authority,
            ]
            : ["websocket_client.py", "wss://\(authority)/"]
        return try await shared.bed.run(
            [PythonPeer.pythonWithPackages, PythonPeer.path(arguments[0])] + arguments.dropFirst() + options,
            environment: shared.proxy.clientEnvironment)
    }

    @Test(arguments: Origin.allCases, [false, true]) func messagesGoBothWays(
        origin: Origin, overHTTP2: Bool
    ) async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, origin)
            for _ in 0..<2 {
                let run = try await talk(shared, overHTTP2: overHTTP2)
                #expect(run.output.hasPrefix("closed 1000"), "\(run)")
            }
            let line = try await shared.proxy.events.first("exchange") { $0["host"] == "socket.test" }
            #expect(
                line["cause"] == nil && line["bytes_up"].flatMap { Int($0) }.map { $0 > 3_000_000 } == true, "\(line)")
            if origin == .http2 {
                #expect(try #require(shared.origin).events.all("request").allSatisfy { $0["method"] == "CONNECT" })
            }
            try await eventually("the tasks to end") { try await shared.tasks.list().isEmpty }
        }
    }

    /// The client's connection ends right after the stream's last bytes: they still reach the origin.
    @Test(arguments: Origin.allCases) func theClientLeavesAtOnce(origin: Origin) async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, origin)
            let process = String(shared.proxy.process.identifier)
            let run = try await talk(shared, overHTTP2: true, ["--stop", process])
            #expect(run.output.hasPrefix("closed 1000"), "\(run)")
            let line = try await shared.proxy.events.first("exchange") { $0["host"] == "socket.test" }
            #expect(line["cause"] == nil, "\(line)")
            try await eventually("the tasks to end") { try await shared.tasks.list().isEmpty }
            let metrics = try await AdminClient(shared.proxy)
            try await eventually("the client's connection to end") {
                try await metrics.ask("GET", "/metrics").body.contains(
                    "\npinproxy_client_connections_open{protocol=\"h2\"} 0\n")
            }
        }
    }

    @Test(arguments: Origin.allCases) func pinsAndRulesHold(origin: Origin) async throws {
        try await withTestBed { bed in
            let entry = "hosts:\n  - match: socket.test\n"
            let shared = try await prepare(
                bed, origin, pins: entry + "    rules: [{path: /, methods: [POST], response: {status: [200]}}]\n")
            #expect(try await talk(shared, overHTTP2: true).output.hasPrefix("closed 1000"))
            try bed.file("proxy/pins.yaml", entry + "    request: {set_headers: {x-ruled: 'yes'}}\n")
            #expect(try await shared.proxy.reload().name == "config.reload")
            for overHTTP2 in [false, true] {
                #expect(try await talk(shared, overHTTP2: overHTTP2).output.hasPrefix("closed 1000"))
            }
            if origin == .http2 {
                #expect(
                    try #require(shared.origin).events.all("request").suffix(2).allSatisfy {
                        $0["lines"]?.contains("x-ruled: yes") == true
                    })
            }
            try bed.file("proxy/pins.yaml", entry + "    pinning: public-key\n    pins: [\(String.wrongPin)]\n")
            #expect(try await shared.proxy.reload().name == "config.reload")
            for overHTTP2 in [false, true] {
                let run = try await talk(shared, overHTTP2: overHTTP2)
                #expect(!run.succeeded, "\(run)")
            }
        }
    }

    /// If the origin refuses the handshake, its answer is passed on, on either side.
    @Test func aRefusalIsPassedOn() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, .http2)
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "socket.test"))
            let stream = try await client.request(
                "CONNECT", "/refused", [(":protocol", "websocket"), ("sec-websocket-version", "13")], ends: false)
            #expect(try await client.head(stream).status == 403)
            let run = try await bed.curl(
                via: shared.proxy,
                [
                    "-i", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13",
                    "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                    "https://\(shared.authority(of: "socket.test"))/refused",
                ])
            #expect(run.output.hasPrefix("HTTP/1.1 403") && run.output.hasSuffix("\r\n\r\nno"), "\(run)")
        }
    }

    /// An origin of HTTP/2 that takes no extended CONNECT is asked in HTTP/1.1; one that speaks nothing else can't be.
    @Test(arguments: ["h2,http/1.1", "h2"]) func anOriginWithoutTheExtension(protocols: String) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, origin: ["--protocols", protocols], sections: ["proxy": ["workers: 1"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            #expect(try await client.settings()["8"] == 1)
            let stream = try await client.request(
                "CONNECT", "/echo", [(":protocol", "websocket"), ("sec-websocket-version", "13")], ends: false)
            let head = try await client.head(stream)
            // In HTTP/1.1 it knows no WebSocket either and answers 200, which would be an acceptance in HTTP/2.
            #expect(head.status == 502, "\(head)")
            if protocols != "h2" {
                #expect(
                    try #require(shared.origin).events.all("request").contains {
                        $0["lines"]?.contains("Upgrade: websocket") == true
                    })
            }
            #expect(try await client.get("/echo").head.status == 200)
        }
    }

    /// Whether it takes extended CONNECTs is in settings that never come: it is asked in HTTP/1.1, for which it may
    /// choose.
    @Test func anOriginThatSaysNothing() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, origin: ["--silent", "preface"], sections: ["proxy": ["workers: 1"], "timeouts": ["connect: 1s"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            _ = try await client.request(
                "CONNECT", "/", [(":protocol", "websocket"), ("sec-websocket-version", "13")], ends: false)
            let origin = try #require(shared.origin)
            _ = try await origin.events.first("connection") { $0["protocol"] == "http/1.1" }
            #expect(origin.events.all("connection").map { $0["protocol"] } == ["h2", "http/1.1"])
        }
    }

    /// An origin of HTTP/1.1 that changes to another protocol, or has not understood the key.
    @Test func aWrongAnswerIsNoWebSocket() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed)
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h1.test"))
            let stream = try await client.request(
                "CONNECT", "/upgrade", [(":protocol", "websocket"), ("sec-websocket-version", "13")], ends: false)
            let head = try await client.head(stream)
            #expect(head.status == 502, "\(head)")
            #expect(try await client.body(stream).text?.contains("Sec-WebSocket-Accept") == true)
            #expect(try await client.get("/echo").head.status == 200)
            try await eventually("the tasks to end") { try await shared.tasks.list().isEmpty }
        }
    }

    /// It is the origin's to take or to refuse, by the name that both versions have for it (RFC 8441 section 5).
    @Test(arguments: Origin.allCases) func anotherProtocol(origin: Origin) async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, origin)
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "socket.test"))
            let stream = try await client.request("CONNECT", "/", [(":protocol", "connect-udp")], ends: false)
            let head = try await client.head(stream)
            if origin == .http2 {
                #expect(head.status == 200, "\(head)")
                let request = try #require(shared.origin).events.all("request").last
                #expect(request?["lines"]?.contains(":protocol: connect-udp") == true, "\(String(describing: request))")
            } else {
                #expect(head.status.map { $0 >= 400 } == true, "\(head)")
            }
        }
    }

    /// When the client resets the stream, the WebSocket ends at the origin too, and no task is left.
    @Test(arguments: Origin.allCases) func aClientThatLeavesEndsIt(origin: Origin) async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, origin)
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "socket.test"))
            let stream = try await client.request(
                "CONNECT", "/", [(":protocol", "websocket"), ("sec-websocket-version", "13")], ends: false)
            #expect(try await client.head(stream).status == 200)
            let task = try await shared.tasks.only { $0.kind == "upgrade" }
            try await client.reset(stream)
            let line = try await shared.proxy.events.first("exchange") { $0["task"] == "\(task.id)" }
            #expect(line["status"] == "101" || line["status"] == "200", "\(line)")
            #expect(try await client.ping().isClosed != true)
            try await eventually("the tasks to end") { try await shared.tasks.list().isEmpty }
        }
    }
}
