import Foundation
import PinproxyTestAuthority
import Testing

/// The proxy's own port with TLS, for clients that speak HTTP/2 there: CONNECT is a stream (RFC 9113 section 8.5).
@Suite(.timeLimit(.minutes(5)))
struct HTTP2FrontTests {
    private func prepare(
        _ bed: TestBed, pins: String = "hosts: []\n", proxy extra: [String] = [], sections: ProxyProcess.Sections = [:]
    ) async throws -> (SharedBed, PythonPeer) {
        let front = try TestRoots("Front")
        let chain = try front.chain("proxy.test", "127.0.0.1")
        try bed.file("proxy/front.pem", chain.pem)
        try bed.file("proxy/front.key", chain.keyPEM)
        let trust = try front.write(to: bed, name: "front")
        let shared = try await HTTP2Bed.prepare(
            bed, pins: pins,
            sections: sections.merging([
                "proxy": ["tls: {certificate: front.pem, private_key: front.key}", "workers: 1"] + extra
            ]) { $1 })
        return (shared, try await HTTP2Client.program(in: shared, trust: trust))
    }

    private func client(_ program: PythonPeer, _ authority: String) async throws -> HTTP2Client {
        let client = try HTTP2Client(of: program, authority: authority)
        let reply = try await client.connect(front: true)
        guard reply.protocol == "h2" else { throw TestBedError("no HTTP/2: \(reply)") }
        return client
    }

    private func connect(
        _ client: HTTP2Client, to authority: String, _ fields: HTTP2Client.Fields = []
    ) async throws -> (stream: Int, head: HTTP2Client.Reply) {
        let stream = try await client.request(
            "CONNECT", "", [(":scheme", nil), (":path", nil), (":authority", authority)] + fields, ends: false)
        return (stream, try await client.head(stream))
    }

    /// Node opens a CONNECT as a stream, TLS in it, and HTTP/2 in that.
    @Test func aProgramReachesOriginsThroughStreams() async throws {
        try await withTestBed { bed in
            let (shared, _) = try await prepare(bed)
            for host in ["h1.test", "h2.test"] {
                let run = try await bed.run([
                    "node", PythonPeer.path("node_http2.mjs"), "\(shared.proxy.port)", shared.proxy.authority,
                    "https://\(shared.authority(of: host))/large/500000", bed.path("front.pem"),
                ])
                #expect(run.output.contains("\"isSame\":true") && run.output.contains("\"echo\":500000"), "\(run)")
            }
        }
    }

    @Test func requestsInTheClearAreStreams() async throws {
        try await withTestBed { bed in
            let (shared, program) = try await prepare(bed)
            let authority = "\(OriginBed.name):\(shared.secondOriginPort)"
            let client = try await client(program, authority)
            let (head, body) = try await client.get("/large/3000000", [(":scheme", "http")])
            #expect(
                head.status == 200 && body.count == 3_000_000 && body.isPattern == true && body.ended == true, "\(body)"
            )
            let upload = try await client.request("POST", "/echo", [(":scheme", "http")], ends: false)
            try await client.send(2_000_000, on: upload, ends: true)
            #expect(try await client.body(upload).text?.contains("\"length\": 2000000") == true)
            let trailers = try await client.get("/chunked", [(":scheme", "http"), ("te", "trailers")])
            #expect(trailers.body.text == "hello, world" && trailers.body.trailers == [["x-sum", "12"]], "\(trailers)")
        }
    }

    /// A tunnel carries bytes both ways, each direction to its own end.
    @Test func tunnelsAreStreams() async throws {
        try await withTestBed { bed in
            let (shared, program) = try await prepare(bed, pins: "defaults: {action: tunnel}\n")
            let authority = "\(OriginBed.name):\(shared.secondOriginPort)"
            let client = try await client(program, authority)
            let first = try await connect(client, to: authority)
            let second = try await connect(client, to: authority)
            #expect(first.head.status == 200 && second.head.status == 200, "\(first.head) \(second.head)")
            try await client.send("GET /hold/tunnel HTTP/1.1\r\nHost: \(authority)\r\n\r\n", on: first.stream)
            #expect(try await client.body(first.stream, atLeast: 40).text?.contains("first,") == true)
            try await client.send(
                "GET /release/tunnel HTTP/1.1\r\nHost: \(authority)\r\nConnection: close\r\n\r\n", on: second.stream,
                ends: true)
            let body = try await client.body(second.stream)
            #expect(body.text?.hasSuffix("released\n") == true && body.ended == true, "\(body)")
            #expect(try await client.body(first.stream, atLeast: 51).text?.contains("second") == true)
            // The client ends its half, the origin then its own.
            try await client.send("", on: first.stream, ends: true)
            #expect(try await client.body(first.stream).ended == true)
            _ = try await shared.proxy.events.first("exchange", number: 2)
            let lines = shared.proxy.events.all("exchange")
            #expect(
                lines.count == 2 && lines.allSatisfy { $0["method"] == "CONNECT" && $0["status"] == "200" }, "\(lines)")
        }
    }

    @Test func refusalsAreOfTheirStream() async throws {
        try await withTestBed { bed in
            let (shared, program) = try await prepare(
                bed,
                pins: """
                    hosts:
                      - {match: other.test, action: deny}
                      - {match: h2.test, pinning: public-key, pins: ["\(String.wrongPin)"]}

                    """)
            let client = try await client(program, shared.authority(of: "h1.test"))
            #expect(try await connect(client, to: shared.authority(of: "other.test")).head.status == 403)
            let wrong = try await connect(client, to: shared.authority(of: "h2.test"))
            #expect(
                wrong.head.status == 502
                    && wrong.head.values("proxy-status").first?.contains("tls_certificate_error") == true, "\(wrong)")
            #expect(try await client.body(wrong.stream).text?.contains("pinning failure for h2.test") == true)
            #expect(try await connect(client, to: "unknown.test:443").head.status.map { $0 >= 500 } == true)
            #expect(try await connect(client, to: "nonsense").head.status == 400)
            #expect(try await connect(client, to: shared.authority(of: "h1.test")).head.status == 200)
            #expect(try await client.ping().isClosed != true)
        }
    }

    /// `proxy.users` holds for each stream.
    @Test func credentialsAreAskedForEachStream() async throws {
        try await withTestBed { bed in
            _ = try await AuthenticationBed.usersFile(in: bed, folder: "proxy")
            let (shared, program) = try await prepare(bed, proxy: ["users: users"])
            let authority = shared.authority(of: "h1.test")
            let client = try await client(program, authority)
            let without = try await connect(client, to: authority)
            #expect(
                without.head.status == 407 && without.head.values("proxy-authenticate").count == 1, "\(without.head)")
            let token = Data("ada:secret".utf8).base64EncodedString()
            #expect(
                try await connect(client, to: authority, [("proxy-authorization", "Basic \(token)")]).head.status == 200
            )
            #expect(try await connect(client, to: authority).head.status == 407)
        }
    }

    /// A stream that is reset ends its tunnel, and the end of the connection all of them.
    @Test func aClientThatLeavesEndsItsTunnels() async throws {
        try await withTestBed { bed in
            let (shared, program) = try await prepare(
                bed, pins: "defaults: {action: tunnel}\n", sections: ["timeouts": ["idle_upstream: 100ms"]])
            let authority = "\(OriginBed.name):\(shared.secondOriginPort)"
            let before = try shared.proxy.openDescriptors()
            let client = try await client(program, authority)
            let streams = try await [
                connect(client, to: authority), connect(client, to: authority), connect(client, to: authority),
            ]
            #expect(streams.allSatisfy { $0.head.status == 200 })
            try await client.reset(streams[0].stream)
            try await eventually("the first to end") { try await shared.tasks.list().count == 2 }
            try await client.close()
            try await eventually("the others to end") { try await shared.tasks.list().isEmpty }
            try await eventually("their descriptors to be closed") { try shared.proxy.openDescriptors() <= before }
        }
    }

    /// A stop sends GOAWAY and closes idle tunnels.
    @Test func theProxyStops() async throws {
        try await withTestBed { bed in
            let (shared, program) = try await prepare(
                bed, pins: "defaults: {action: tunnel}\n",
                sections: ["timeouts": ["drain: 10m", "drain_tunnels: 50ms"]])
            let authority = "\(OriginBed.name):\(shared.secondOriginPort)"
            let client = try await client(program, authority)
            #expect(try await connect(client, to: authority).head.status == 200)
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await client.goaways(1).first?.code == "NO_ERROR")
            #expect(try await shared.proxy.process.ending() == .exited(0))
            try await client.closed()
        }
    }

    @Test func anIdleClientIsClosed() async throws {
        try await withTestBed { bed in
            let (shared, program) = try await prepare(bed, sections: ["timeouts": ["idle_client: 1s"]])
            let before = try shared.proxy.openDescriptors()
            let client = try await client(program, shared.authority(of: "h1.test"))
            try await client.closed()
            try await eventually("its descriptors to be closed") { try shared.proxy.openDescriptors() <= before }
        }
    }

    /// Chromium speaks HTTP/2 to the proxy, and inside.
    @Test(
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/certutil")), arguments: ["http", "https"])
    func aBrowserSpeaksIt(scheme: String) async throws {
        try await withTestBed { bed in
            let (shared, _) = try await prepare(bed)
            let home = bed.path("browser")
            let installed = try await bed.run(
                [ProxyProcess.executable, "ca", "install", "--nss", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed).merging(["HOME": home]) { $1 })
            #expect(installed.succeeded, "\(installed)")
            let added = try await bed.run([
                "certutil", "-A", "-d", "sql:\(home)/.pki/nssdb", "-n", "front", "-t", "C,,", "-i",
                bed.path("front.pem"),
            ])
            #expect(added.succeeded, "\(added)")
            let url = "https://\(shared.authority(of: "h2.test"))"
            let run = try await bed.run(
                [
                    PythonPeer.python, PythonPeer.path("browser.py"), "\(url)/hints", "--proxy",
                    "\(scheme)://127.0.0.1:\(shared.proxy.port)", "--profile", bed.path("b"), "--fetch", "\(url)/echo",
                    "\(url)/chunked",
                ], environment: ["HOME": home])
            struct Seen: Decodable {
                let `protocol`: String
                let status: Int
                let fetched: [String]
            }
            let seen = try JSONDecoder().decode(Seen.self, from: Data(run.output.utf8))
            #expect(seen.protocol == "h2" && seen.status == 200, "\(run)")
            #expect(
                seen.fetched.first?.contains("\"version\": \"HTTP/2\"") == true && seen.fetched.last == "hello, world",
                "\(run)")
        }
    }
}
