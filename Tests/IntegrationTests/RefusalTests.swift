import Foundation
import Testing

/// How a failed exchange ends: with an answer that names the cause, in time, and with a log line.
@Suite(.sharedBed(RefusalBed.prepare), .timeLimit(.minutes(5)))
struct RefusalTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    @Test func aNameThatDoesNotExist() async throws {
        let answer = try await shared.proxy.connect(to: "nowhere.onion:443")
        Expected.refused(502, "dns_error").check(answer, host: "nowhere.onion")
    }

    @Test func aPortThatNobodyListensOn() async throws {
        let port = try shared.bed.port()
        let answer = try await shared.proxy.connect(to: "origin.test:\(port)")
        Expected.refused(502, "connection_refused").check(answer, host: "origin.test")
    }

    @Test func anAddressThatIsBlocked() async throws {
        // Names that resolve to the metadata service of clouds, one of them in IPv4-mapped form.
        for name in ["metadata.test", "mapped.test"] {
            let answer = try await shared.proxy.connect(to: "\(name):80")
            Expected.refused(403, "destination_ip_prohibited").check(answer, host: name)
        }
        let literal = try await shared.proxy.connect(to: "169.254.169.254:80")
        #expect(literal.status == 403, "\(literal)")
    }

    @Test func anOriginThatSpeaksNoTLS() async throws {
        // nginx answers a ClientHello with a page in the clear.
        let nginx = try await NginxOrigin(
            in: shared.bed, sites: [.init(name: "origin.test", chain: TestRoots().chain("origin.test"))])
        let run = try await shared.bed.curl(via: shared.proxy, ["-i", "https://origin.test:\(nginx.plainPort)/"])
        #expect(!run.succeeded && run.output.isEmpty && run.errors.contains("alert handshake failure"), "\(run)")
        let line = try await shared.proxy.events.first("exchange") { $0["port"] == "\(nginx.plainPort)" }
        #expect(
            line["error"] == "tls_protocol_error" && line["cause"]?.contains("does not speak TLS") == true, "\(line)")
        // A plain HTTP client gets its page.
        let plain = try await shared.bed.curl(
            via: shared.proxy, ["--proxytunnel", "-i", "http://origin.test:\(nginx.plainPort)/"])
        #expect(plain.output.contains("HTTP/1.1 ") && plain.output.contains("nginx"), "\(plain)")
    }

    @Test(arguments: [
        "origin.test", "origin.test:", "origin.test:0x50", "origin.test:70000", "user@origin.test:443", ":443",
        "[::1:443", "[::1]443", "origin..test:443", "https://origin.test:443/", "/", "*",
    ])
    func aConnectWithoutAnAuthority(target: String) async throws {
        let answer = try await shared.proxy.connect(to: target)
        #expect(answer.status == 400, "\(answer)")
    }

    @Test(arguments: [
        (
            "https://user:password@origin.test/x?secret",
            ["\\\"https://***:***@origin.test/x?***\\\" came", "origin.test:443"]
        ),
        ("http://origin.test:81/", ["http://origin.test:81", "origin.test:81"]), ("*", ["*", "host:port"]),
        ("origin.test", ["origin.test", "origin.test:443", "port is missing"]), ("/x?secret", ["/x", "host:port"]),
        ("user:password@origin.test:443", ["user information", "host:port"]),
    ])
    func aConnectSaysWhatCameAndWhatIsWanted(target: String, parts: [String]) async throws {
        let answer = try await shared.proxy.connect(to: target)
        #expect(answer.status == 400, "\(answer)")
        let status = answer["Proxy-Status"] ?? ""
        #expect(status.contains("CONNECT") && parts.allSatisfy(status.contains), "\(answer)")
        #expect(!answer.description.contains("secret") && !answer.description.contains("password"), "\(answer)")
    }

    @Test(arguments: [
        "https://user:password@origin.test/", "ftp://origin.test/", "http://", "http:///x", "https://[::1/",
    ])
    func aTargetThatIsNoURL(target: String) async throws {
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send("GET \(target) HTTP/1.1\r\nHost: origin.test\r\n\r\n")
        #expect(try await connection.response().status == 400)
    }

    @Test func hostsThatDisagreeAreMisdirected() async throws {
        func ask(_ host: String, _ options: String...) async throws -> Run {
            try await shared.bed.run(
                [
                    "timeout", "30", "openssl", "s_client", "-quiet", "-proxy",
                    "\(shared.proxy.address):\(shared.proxy.port)", "-connect", shared.authority,
                ] + options,
                input: Array("GET /echo HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n".utf8))
        }
        let right = try await ask(shared.authority, "-servername", "origin.test")
        #expect(right.output.hasPrefix("HTTP/1.1 200 "), "\(right)")
        let absent = try await ask(shared.authority, "-noservername")
        #expect(absent.output.hasPrefix("HTTP/1.1 200 "), "\(absent)")
        let otherHost = try await ask("other.test:\(shared.originPort)", "-servername", "origin.test")
        #expect(otherHost.output.hasPrefix("HTTP/1.1 421 "), "\(otherHost)")
        let otherPort = try await ask("origin.test:1", "-servername", "origin.test")
        #expect(otherPort.output.hasPrefix("HTTP/1.1 421 "), "\(otherPort)")
        let otherName = try await ask("other.test:\(shared.originPort)", "-servername", "other.test")
        #expect(otherName.output.hasPrefix("HTTP/1.1 421 "), "\(otherName)")
    }

    /// An address in SNI violates RFC 6066, but real clients send it, and it repeats what CONNECT said.
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1", 200), ("127.0.0.1", "127.0.0.2", 421), ("127.0.0.1", "origin.test", 421),
    ])
    func anAddressAsNameAgreesWithItself(_ host: String, _ name: String, _ status: Int) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: roots.chain("127.0.0.1"))
            let proxy = try await ProxyProcess(in: bed, trust: roots.write(to: bed))
            let authority = "\(host):\(origin.port)"
            let run = try await bed.run(
                [
                    "timeout", "30", "openssl", "s_client", "-quiet", "-proxy", "\(proxy.address):\(proxy.port)",
                    "-connect", authority, "-servername", name,
                ], input: Array("GET /echo HTTP/1.1\r\nHost: \(authority)\r\nConnection: close\r\n\r\n".utf8))
            #expect(run.output.hasPrefix("HTTP/1.1 \(status) "), "\(run)")
            guard status == 421 else { return }
            #expect(run.output.contains("for \(authority) by CONNECT, but its SNI names \(name)"), "\(run)")
        }
    }

    @Test func aMisdirectedRequestIsToldWhichNameDisagrees() async throws {
        func ask(_ line: String, _ host: String) async throws -> String {
            try await shared.bed.secureExchange(
                via: shared.proxy, to: shared.authority,
                "\(line) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n"
            ).output
        }
        let start = "for \(shared.authority) by CONNECT, but its"
        let host = try await ask("GET /", "other.test")
        #expect(host.contains("\(start) Host names other.test:443"), "\(host)")
        let url = try await ask("GET https://other.test/", shared.authority)
        #expect(url.contains("\(start) URL names other.test:443"), "\(url)")
        let plain = try await ask("GET http://\(shared.authority)/", shared.authority)
        #expect(plain.contains("\(start) URL is not https"), "\(plain)")
        let odd = try await ask("GET https://user:password@origin.test/", shared.authority)
        #expect(odd.contains("\(start) URL names what is not a host"), "\(odd)")
        #expect(!odd.contains("password"), "\(odd)")
    }

    /// A client that resets while its origin is dialled leaves one line, with the reason.
    @Test func aClientThatGoesWhileItsOriginIsDialledIsLogged() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, hosts: ["slow.test": "127.0.0.1"])
            // It accepts the connection, and never answers the ClientHello.
            let origin = try ListeningSocket()
            let authority = "slow.test:\(origin.port)"
            var dialled: CInt = -1
            defer { close(dialled) }
            do {
                let client = try RawConnection(to: proxy)
                try await client.resetOnClose()
                try await client.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
                dialled = accept(origin.descriptor, nil, nil)
                try #require(dialled >= 0)
                _ = consume client
            }
            let line = try await proxy.events.first("exchange")
            #expect(line["method"] == "CONNECT" && line["host"] == "slow.test", "\(line)")
            #expect(line["cause"]?.contains("client: Connection reset by peer") == true, "\(line)")
            // The next line is another exchange's.
            _ = try await proxy.connect(to: "nowhere.onion:1")
            _ = try await proxy.events.first("exchange") { $0["host"] == "nowhere.onion" }
            #expect(proxy.events.all("exchange").count == 2, "\(proxy.events.all("exchange"))")
        }
    }

    @Test func theProxyDoesTLSForAURLWithHTTPS() async throws {
        func get(_ url: String, on connection: RawConnection) async throws -> RawResponse {
            let host = url.components(separatedBy: "/")[2]
            try await connection.send("GET \(url) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            return try await connection.response()
        }
        let connection = try RawConnection(to: shared.proxy)
        #expect(try await get(shared.url + "/echo", on: connection).status == 200)
        #expect(try await get(shared.plainURL + "/echo", on: connection).status == 200)
        #expect(try await get(shared.url + "/echo", on: connection).status == 200)
        let wrong = try await get("https://wrong.test:\(shared.originPort)/echo", on: connection)
        Expected.refused(502, "pinning failure").check(wrong, host: "wrong.test")
    }

    @Test func aRefusalAtConnectKeepsTheConnection() async throws {
        let connection = try RawConnection(to: shared.proxy)
        for (host, status) in [("wrong.test", 502), ("deny.test", 403), ("origin.test", 200)] {
            try await connection.send(
                "CONNECT \(host):\(shared.originPort) HTTP/1.1\r\nHost: \(host):\(shared.originPort)\r\n\r\n")
            #expect(try await connection.response().status == status)
        }
    }

    @Test func aHeadThatIsTooLarge() async throws {
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send(
            """
            GET \(shared.plainURL)/echo HTTP/1.1\r\nHost: origin.test\r\nX: \
            \(String(repeating: "x", count: 9000))\r\n\r\n
            """
        )
        #expect(try await connection.response().status == 431)
        let run = try await shared.curl("-i", shared.url + "/raw/" + largeHead)
        #expect(run.output.hasPrefix("HTTP/1.1 502 "), "\(run)")
    }

    @Test func aHeadWithTooManyFields() async throws {
        let connection = try RawConnection(to: shared.proxy)
        let fields = String(repeating: "X:\r\n", count: 1000)
        try await connection.send("GET \(shared.plainURL)/echo HTTP/1.1\r\nHost: origin.test\r\n\(fields)\r\n")
        let answer = try await connection.response()
        #expect(answer.status == 431 && answer.description.contains("1000 field"), "\(answer)")
        let head = "HTTP/1.1 200 OK\r\n" + String(repeating: "X:\r\n", count: 1001) + "\r\n"
        let run = try await manyFields(head)
        #expect(run.output.hasPrefix("HTTP/1.1 502 ") && run.output.contains("1000 field"), "\(run)")
    }

    /// The shared proxy takes no head of that length from an origin.
    private func manyFields(_ head: String) async throws -> Run {
        try await withTestBed { bed in
            let own = try await OriginBed.prepare(bed)
            let encoded = Data(head.utf8).base64EncodedString()
                .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            return try await own.curl("-i", own.url + "/raw/" + encoded)
        }
    }

    private var largeHead: String {
        Data("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 5000))\r\n\r\n".utf8).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
    }

    @Test func aClientThatSpeaksNoTLSInItsTunnel() async throws {
        for greeting in ["GET / HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}\u{0}\u{5}hello", "\0\0\0\0\0\0\0\0"] {
            let connection = try RawConnection(to: shared.proxy)
            try await connection.send("CONNECT \(shared.authority) HTTP/1.1\r\nHost: \(shared.authority)\r\n\r\n")
            #expect(try await connection.response().status == 200)
            try await connection.send(greeting)
            let rest = String(decoding: try await connection.receiveAll(), as: UTF8.self)
            #expect(!rest.contains("200 OK"), "\(rest)")
        }
    }

    @Test func anExchangeLeavesItsLineInTheLog() async throws {
        let run = try await shared.curl(shared.url + "/echo?secret=1")
        #expect(run.succeeded)
        let event = try await shared.proxy.events.first("exchange") { $0["path"]?.hasPrefix("/echo") == true }
        #expect(event["method"] == "GET" && event["host"] == "origin.test", "\(event)")
        #expect(event["port"] == "\(shared.originPort)" && event["status"] == "200", "\(event)")
        #expect(!"\(shared.proxy.events.all)".contains("secret"))
    }
}

enum RefusalBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await OriginBed.prepare(
            bed,
            pins: """
                hosts:
                  - match: wrong.test
                    pinning: public-key
                    pins: [\(String.wrongPin)]
                  - match: deny.test
                    action: deny

                """,
            sections: ["limits": ["request_head: 8KiB", "response_head: 4KiB"]],
            hosts: [
                "wrong.test": "127.0.0.1", "deny.test": "127.0.0.1", "metadata.test": "169.254.169.254",
                "mapped.test": "::ffff:169.254.169.254",
            ])
    }
}
