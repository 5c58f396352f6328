import Foundation
import PinproxyTestAuthority
import Testing

/// Plain HTTP inside CONNECT: the client's first bytes identify it, and its requests follow the rules for `http://`
/// URLs. Port 80 is assumed to be plain HTTP before the client speaks; any other port if its server doesn't speak TLS.
@Suite(.timeLimit(.minutes(5)), .enabled(if: geteuid() == 0, "needs root, to listen on port 80"))
struct PlainConnectTests {
    /// Two origins on port 80, plain and with TLS, and the usual ones.
    private struct Bed {
        let shared: SharedBed
        let plain: PythonPeer
        let secure: PythonPeer

        func connect(to authority: String) async throws -> RawConnection {
            let client = try RawConnection(to: shared.proxy)
            try await client.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            let answer = try await client.response()
            #expect(answer.status == 200, "\(answer)")
            return client
        }

        func cause(_ part: String) async throws {
            _ = try await shared.proxy.events.first("exchange") { $0["cause"]?.contains(part) == true }
        }
    }

    private static let get = "GET /echo HTTP/1.1\r\nHost: plain.test\r\n\r\n"

    private func withBed(
        pins: String = "hosts: []\n", sections: ProxyProcess.Sections = [:], secureRoots: TestRoots? = nil,
        _ body: (Bed) async throws -> Void
    ) async throws {
        try await withTestBed { bed in
            let network = LoopbackAddress.network()
            let roots = try TestRoots()
            let plain = try await PythonPeer.origin(in: bed, chain: nil, ["--listen", "\(network).1", "--port", "80"])
            let secure = try await PythonPeer.origin(
                in: bed, name: "secure", chain: (secureRoots ?? roots).chain("secure.test"),
                ["--listen", "\(network).2", "--port", "80"])
            let shared = try await OriginBed.prepare(
                bed, pins: pins, sections: sections,
                hosts: ["plain.test": "\(network).1", "secure.test": "\(network).2"], roots: roots)
            try await body(Bed(shared: shared, plain: plain, secure: secure))
        }
    }

    // MARK: Real clients

    @Test func curlInATunnel() async throws {
        try await withBed { bed in
            let url = "http://plain.test/echo"
            let run = try await bed.shared.curl("--proxytunnel", "-d", "a", url, url)
            #expect(run.succeeded && run.output.components(separatedBy: "\"method\": \"POST\"").count == 3, "\(run)")
            // Both went over the connection that was made for CONNECT.
            #expect(bed.plain.events.all("request").map { $0["connection"] } == ["1", "1"])
            #expect(bed.plain.events.all("request").allSatisfy { $0["target"] == "/echo" })
        }
    }

    /// It silently closes a connection that begins with a ClientHello.
    @Test func aWebSocketLibraryOnAPortOfItsOwn() async throws {
        try await withTestBed { bed in
            let origin = try await PythonPeer(
                in: bed, script: "websocket_origin.py", interpreter: PythonPeer.pythonWithPackages)
            let proxy = try await ProxyProcess(in: bed, trust: nil, hosts: ["socket.test": "127.0.0.1"])
            let run = try await bed.run(
                [
                    PythonPeer.pythonWithPackages, PythonPeer.path("websocket_client.py"),
                    "ws://socket.test:\(origin.port)/",
                ],
                environment: proxy.clientEnvironment)
            #expect(run.output == "closed 1000", "\(run)")
        }
    }

    /// It answers a ClientHello with HTML.
    @Test func aServerThatAnswersTLSWithAnError() async throws {
        try await withTestBed { bed in
            let origin = try await PythonPeer(in: bed, script: "dripping.py", ["origin"])
            let shared = try await OriginBed.prepare(bed)
            let url = "http://\(OriginBed.name):\(origin.port)/pause/0"
            let run = try await shared.curl("--proxytunnel", url)
            #expect(run.output == "later", "\(run)")
            // A client that speaks TLS is not served by it, and gets no HTTP.
            let secure = try await shared.curl("-i", url.replacingOccurrences(of: "http:", with: "https:"))
            #expect(!secure.succeeded && secure.output.isEmpty && secure.errors.contains("alert"), "\(secure)")
            _ = try await shared.proxy.events.first("exchange") { $0["cause"]?.contains("does not speak TLS") == true }
        }
    }

    @Test func aServerThatSpeaksFirstIsRefused() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            // What a mail server says; the connection stays open.
            let origin = try await PythonPeer(in: bed, script: "greeting.py")
            let answer = try await shared.proxy.connect(to: "\(OriginBed.name):\(origin.port)")
            #expect(answer.status == 502 && answer["Proxy-Status"]?.contains("tls_protocol_error") == true, "\(answer)")
        }
    }

    // MARK: TLS stays TLS

    @Test func tlsOnPort80IsVerifiedAndServed() async throws {
        try await withBed { bed in
            let run = try await bed.shared.curl("-i", "https://secure.test:80/echo")
            #expect(run.output.hasPrefix("HTTP/1.1 200 "), "\(run)")
            #expect(bed.secure.events.all("request").count == 1)
        }
    }

    /// The server at port 80 is plain, and would answer.
    @Test func aClientOfTLSNeverGetsToAPlainServer() async throws {
        try await withBed(sections: ["timeouts": ["tls_handshake: 1s"]]) { bed in
            let run = try await bed.shared.curl("-i", "https://plain.test:80/echo")
            #expect(!run.succeeded && run.output.isEmpty && run.errors.contains("alert"), "\(run)")
            #expect(bed.plain.events.all("request").isEmpty)
            try await bed.cause("timed out the TLS handshake")
        }
    }

    @Test func aWrongCertificateOnPort80IsRefused() async throws {
        try await withBed(secureRoots: TestRoots("Others")) { bed in
            let run = try await bed.shared.curl("-i", "https://secure.test:80/echo")
            #expect(!run.succeeded && run.output.isEmpty && run.errors.contains("alert"), "\(run)")
            _ = try await bed.shared.proxy.events.first("trust.failure")
            #expect(bed.secure.events.all("request").isEmpty)
        }
    }

    /// A plain request over a connection that was made for TLS goes plain to the same port, and no further.
    @Test func aPlainRequestDoesNotUseTheTLSConnection() async throws {
        try await withBed { bed in
            let client = try await bed.connect(to: bed.shared.authority)
            try await client.send("GET /echo HTTP/1.1\r\nHost: \(bed.shared.authority)\r\n\r\n")
            let answer = try await client.response()
            #expect(answer.status == 502, "\(answer)")
            #expect(bed.shared.origin?.events.all("request").isEmpty == true)
        }
    }

    // MARK: Policy

    @Test(arguments: [false, true]) func aPinnedHost(upgrades: Bool) async throws {
        let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        let rule = upgrades ? ", request: {upgrade_insecure: true}" : ""
        let pins = """
            hosts:
              - {match: \(OriginBed.name), pinning: public-key, enforcement: report, pins: [\(pin)]\(rule)}
              - {match: plain.test, pinning: public-key, pins: [\(pin)]}

            """
        try await withBed(pins: pins, sections: ["timeouts": ["tls_handshake: 1s"]]) { bed in
            let client = try await bed.connect(to: bed.shared.authority)
            try await client.send("GET /echo HTTP/1.1\r\nHost: \(bed.shared.authority)\r\n\r\n")
            let answer = try await client.response()
            #expect(answer.status == (upgrades ? 200 : 403), "\(answer)")
            #expect(answer.reason.contains("Plain HTTP to pinned host") == !upgrades, "\(answer)")
            #expect(bed.shared.origin?.events.all("request").count == (upgrades ? 1 : 0))
            // On port 80 too: nothing is promised that can't be held.
            let refused = try await bed.shared.proxy.connect(to: "plain.test:80")
            #expect(refused.status == 504, "\(refused)")
            #expect(bed.plain.events.all("request").isEmpty)
        }
    }

    @Test func rulesHold() async throws {
        let pins = "hosts: [{match: plain.test, request: {set_headers: {X-Rule: here}}}]\n"
        try await withBed(pins: pins) { bed in
            let run = try await bed.shared.curl("--proxytunnel", "http://plain.test/echo")
            #expect(run.output.contains("X-Rule: here"), "\(run)")
            let line = try await bed.shared.proxy.events.first("exchange") { $0["method"] == "GET" }
            #expect(line["host"] == "plain.test" && line["entry"] == "plain.test", "\(line)")
        }
    }

    /// The host needn't exist: its base is connected to.
    @Test func aBaseHolds() async throws {
        let pins = "hosts: [{match: nowhere.onion, session: {base_url: \"http://plain.test/received/\"}}]\n"
        try await withBed(pins: pins) { bed in
            let run = try await bed.shared.curl("--proxytunnel", "http://nowhere.onion/here")
            let received = try ReceivedRequest(run)
            #expect(received.target == "/received/here" && received.values("Host") == ["plain.test"], "\(received)")
            #expect(bed.plain.events.all("request").count == 1)
        }
    }

    /// A page replaces a refused response, in plain HTTP too. Nothing goes to the origin.
    @Test func aRefusalPage() async throws {
        let pins =
            """
            hosts: [{match: secure.test, on_refusal: page, pinning: public-key, pins: \
            [sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]}]\n
            """
        try await withBed(pins: pins) { bed in
            let client = try await bed.connect(to: "secure.test:80")
            try await client.send("GET /echo HTTP/1.1\r\nHost: secure.test\r\n\r\n")
            #expect(try await client.response().status == 502)
            #expect(bed.secure.events.all("request").isEmpty && bed.plain.events.all("request").isEmpty)
        }
    }

    @Test func aReloadHoldsForTheNextRequest() async throws {
        try await withBed { bed in
            let client = try await bed.connect(to: "plain.test:80")
            try await client.send(Self.get)
            #expect(try await client.response().status == 200)
            try ProxyProcess.write(
                to: bed.shared.bed, folder: "proxy", pins: "hosts: [{match: plain.test, action: deny}]\n",
                trust: bed.shared.bed.path("roots.pem"), sections: [:])
            #expect(try await bed.shared.proxy.reload().name == "config.reload")
            try await client.send(Self.get)
            #expect(try await client.response().status == 403)
        }
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", "its Host names other.test"),
        ("GET / HTTP/1.1\r\nHost: plain.test:443\r\n\r\n", "its Host names plain.test:443"),
        ("GET https://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n\r\n", "its URL is not http"),
        ("GET https://plain.test:80/ HTTP/1.1\r\nHost: plain.test:80\r\n\r\n", "its URL is not http"),
        ("GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n", "its Host names other.test"),
        ("CONNECT plain.test:80 HTTP/1.1\r\nHost: plain.test:80\r\n\r\n", "it is another CONNECT"),
    ]) func aRequestForAnother(_ request: String, _ cause: String) async throws {
        try await withBed { bed in
            let client = try await bed.connect(to: "plain.test:80")
            try await client.send(request)
            let answer = try await client.response()
            #expect(
                answer.status == 421 && answer.body.contains("for plain.test:80 by CONNECT, but \(cause)"), "\(answer)")
            #expect(bed.plain.events.all("request").isEmpty)
        }
    }

    @Test func aURLInside() async throws {
        try await withBed { bed in
            let client = try await bed.connect(to: "plain.test:80")
            try await client.send("GET http://plain.test/echo HTTP/1.1\r\nHost: plain.test\r\n\r\n")
            let answer = try await client.response()
            #expect(answer.status == 200 && answer.body.contains("\"target\": \"/echo\""), "\(answer)")
        }
    }

    @Test func anUpgradeInside() async throws {
        try await withBed { bed in
            let client = try await bed.connect(to: "plain.test:80")
            try await client.send(
                "GET /upgrade HTTP/1.1\r\nHost: plain.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly;")
            let answer = try await client.response()
            #expect(answer.status == 101, "\(answer)")
            try await client.finishSending()
            let rest = String(decoding: try await client.receiveAll(), as: UTF8.self)
            #expect(answer.body + rest == "early;bye\n")
        }
    }

    // MARK: First bytes

    @Test func aRequestInPieces() async throws {
        try await withBed { bed in
            let client = try await bed.connect(to: "plain.test:80")
            for byte in Array(Self.get.utf8) { try await client.send([byte]) }
            #expect(try await client.response().status == 200)
        }
    }

    /// With CONNECT, before its answer.
    @Test func aRequestThatDoesNotWait() async throws {
        try await withBed { bed in
            let client = try RawConnection(to: bed.shared.proxy)
            try await client.send("CONNECT plain.test:80 HTTP/1.1\r\nHost: plain.test:80\r\n\r\n" + Self.get + Self.get)
            for _ in 1...3 { #expect(try await client.response().status == 200) }
        }
    }

    @Test(arguments: ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "EHLO a.test\r\n", "get\r\n\r\n"])
    func textThatIsNoRequest(_ text: String) async throws {
        try await withBed { bed in
            let client = try await bed.connect(to: "plain.test:80")
            try await client.send(text)
            #expect(try await client.response().status == 400)
            #expect(try await client.receiveAll().isEmpty)
            #expect(bed.plain.events.all("request").isEmpty)
        }
    }

    @Test(arguments: [
        [0], [13, 10], [0x80, 0x2e, 1, 0, 2], [0xff, 0xff], Array("1 / HTTP/1.1\r\n".utf8), [0x15, 3, 1, 0, 2, 1, 0],
    ])
    func bytesThatAreNothing(_ bytes: [UInt8]) async throws {
        try await withBed(sections: ["timeouts": ["tls_handshake: 1s"]]) { bed in
            for authority in ["plain.test:80", bed.shared.authority] {
                let client = try await bed.connect(to: authority)
                try await client.send(bytes)
                let answer = try await client.receiveUntilCut().bytes
                // An alert, or nothing.
                #expect(answer.isEmpty || answer.first == 21, "\(answer)")
            }
            #expect(bed.plain.events.all("request").isEmpty)
        }
    }

    @Test func halfARequestLine() async throws {
        try await withBed(sections: ["timeouts": ["idle_client: 1s"]]) { bed in
            let client = try await bed.connect(to: "plain.test:80")
            try await client.send("GET /ec")
            #expect(try await client.response().status == 408)
        }
    }

    /// As one that is to speak TLS.
    @Test func aClientThatWaitsForTheServer() async throws {
        try await withBed(sections: ["timeouts": ["tls_handshake: 1s", "idle_upstream: 100ms"]]) { bed in
            let before = try await bed.shared.footprint()
            let client = try await bed.connect(to: "plain.test:80")
            #expect(try await client.receiveUntilCut().bytes.isEmpty)
            try await bed.cause("the client's TLS handshake took longer than")
            try await bed.shared.hasGivenBack(since: before)
        }
    }

    @Test func aClientThatLeavesWhileItsServerIsVerified() async throws {
        try await withBed(sections: ["timeouts": ["tls_handshake: 1s", "idle_upstream: 100ms"]]) { bed in
            let before = try await bed.shared.footprint()
            do {
                let client = try await bed.connect(to: "plain.test:80")
                try await client.send([0x16, 3, 1, 0x02, 0, 1, 0, 1, 0xfc, 3, 3])
                try await client.resetOnClose()
            }
            try await bed.shared.hasGivenBack(since: before)
        }
    }
}
