import Foundation
import PinproxyTestAuthority
import Testing

/// A proxy with an admin port, and an entry that has secrets.
enum AdminBed {
    private static let pins = """
        hosts:
          - match: secret.test
            request:
              set_headers: {X-Auth: {file: secret}, X-Key: another-secret}
              parameters: {key: third-secret}
        """

    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await OriginBed.prepare(
            bed, pins: pins, sections: AdminClient.section, files: ["proxy/secret": "very-secret-value\n"])
    }
}

/// The admin port with real clients, good and bad.
@Suite(.timeLimit(.minutes(5)), .sharedBed(AdminBed.prepare))
struct AdminPortTests {
    private func admin() async throws -> AdminClient { try await AdminClient(try sharedBed().proxy) }

    // MARK: Answers

    @Test func itShowsWhatTheControlSocketShows() async throws {
        let shared = try sharedBed()
        let admin = try await admin()
        #expect(try await admin.ask("GET", "/healthz").body == #"{"status":"alive"}"#)
        #expect([200, 503].contains(try await admin.ask("GET", "/readyz").status))
        let status = try await admin.object("/status")
        #expect(status["running"] as? Bool == true)
        #expect(status["admin"] as? [String] == ["127.0.0.1:\(admin.port)"])
        let certificate = try await admin.ask("GET", "/ca.pem")
        #expect(try certificate.body == String(contentsOfFile: shared.proxy.authority, encoding: .utf8))
        let script = try await admin.ask("GET", "/proxy.pac")
        #expect(script.body.contains("PROXY 127.0.0.1:\(shared.proxy.port)"))
        #expect(script["content-type"] == "application/x-ns-proxy-autoconfig")
    }

    @Test func theScriptRunsWhereBrowsersRunIt() async throws {
        let shared = try sharedBed()
        let script = try await admin().ask("GET", "/proxy.pac").body
        let program = """
            const isPlainHostName = h => !h.includes('.'), dnsDomainIs = (h, d) => h.endsWith(d);
            \(script)
            console.log(FindProxyForURL('https://a.test/', 'a.test'), FindProxyForURL('http://localhost/', 'localhost'),
              FindProxyForURL('http://a.localhost/', 'a.localhost'), FindProxyForURL('http://127.0.0.1/', '127.0.0.1'));
            """
        let run = try await shared.bed.run(["node", "-e", program])
        #expect(run.output == "PROXY 127.0.0.1:\(shared.proxy.port) DIRECT DIRECT DIRECT", "\(run)")
    }

    @Test func theConfigurationIsShownWithoutItsSecrets() async throws {
        let answer = try await admin().ask("GET", "/config")
        #expect(answer.status == 200)
        #expect(answer.body.contains("\"match\":\"secret.test\"") && answer.body.contains("request.set_headers: •••"))
        for secret in ["very-secret-value", "another-secret", "third-secret"] { #expect(!answer.body.contains(secret)) }
        let object = try #require(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any])
        #expect(object["generation"] as? Int == 1)
        let entry = try #require((object["entries"] as? [[String: Any]])?.first)
        #expect((entry["location"] as? String)?.hasSuffix("pins.yaml:2") == true)
    }

    @Test func tasksAreShownWithoutTheirPaths() async throws {
        let shared = try sharedBed()
        let admin = try await admin()
        let held = Task { try await shared.curl("--max-time", "120", shared.url + "/silent?token=x") }
        defer { held.cancel() }
        var seen = ""
        try await eventually("the task to be shown") {
            seen = try await admin.ask("GET", "/tasks").body
            return seen.contains("\"host\":\"origin.test\"") && seen.contains("\"method\":\"GET\"")
        }
        #expect(!seen.contains("/silent"))
        let list = try await shared.tasks.ask("GET", "/tasks").body
        #expect(list.contains("\"path\":\"/silent\""))
        let id = try #require(try await shared.tasks.list().first { $0.path == "/silent" }).id
        #expect(try await admin.ask("POST", "/tasks/\(id)/cancel").status == 403)
        #expect(try await admin.ask("GET", "/tasks/\(id)/cancel").status == 403)
        try await shared.tasks.order("cancel", id)
        _ = try await held.value
    }

    @Test(arguments: [
        ("GET", "/nix", 404), ("POST", "/status", 405), ("POST", "/healthz", 405), ("GET", "/reload", 403),
        ("POST", "/reload", 403),
        ("POST", "/learn?stop", 403), ("OPTIONS", "/reload", 403), ("OPTIONS", "/status", 405), ("PUT", "/config", 405),
        ("DELETE", "/tasks/1", 405), ("TRACE", "/status", 405), ("GET", "http://127.0.0.1/status", 400),
        ("CONNECT", "origin.test:443", 400), ("GET", "/../status", 404), ("GET", "/%73tatus", 404),
    ])
    func nothingIsChangedAndNothingElseIsThere(_ method: String, _ target: String, _ status: Int) async throws {
        let answer = try await admin().ask(method, target)
        #expect(answer.status == status, "\(answer)")
    }

    @Test func aHeadIsAnsweredWithoutABody() async throws {
        let connection = try RawConnection(port: try await admin().port)
        try await connection.send("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n")
        let all = String(decoding: try await connection.receiveAll(), as: UTF8.self)
        #expect(
            all.components(separatedBy: "HTTP/1.1 200").count == 3 && all.hasSuffix(#"{"status":"alive"}"#), "\(all)")
        #expect(all.components(separatedBy: "\"alive\"").count == 2)
    }

    // MARK: Browsers

    @Test(arguments: ["evil.test", "127.0.0.1.evil.test:7468", "origin.test"])
    func aNameOfSomebodyElsesIsNotAnsweredTo(_ host: String) async throws {
        let admin = try await admin()
        for target in ["/status", "/healthz", "/proxy.pac", "/nix"] {
            let answer = try await admin.ask("GET", target, "Host: \(host)\r\n")
            #expect(answer.status == 421, "\(answer)")
            #expect(!answer.body.contains("running"))
        }
    }

    /// The fields that browsers send for a page's subresource, and for a link on it. Nothing is read, and nothing is
    /// changed.
    @Test(arguments: ["cross-site", "same-site"])
    func aPageOfAnotherOriginIsNotAnswered(_ site: String) async throws {
        let admin = try await admin()
        for (method, target) in [
            ("GET", "/"), ("GET", "/healthz"), ("GET", "/status"), ("POST", "/reload"), ("GET", "/nix"),
        ] {
            let answer = try await admin.ask(method, target, "Sec-Fetch-Site: \(site)\r\nSec-Fetch-Mode: no-cors\r\n")
            #expect(answer.status == 403 && answer.body.contains("Sec-Fetch-Site: \(site)"), "\(answer)")
        }
        for own in ["same-origin", "none"] {
            #expect(try await admin.ask("GET", "/status", "sec-fetch-site: \(own)\r\n").status == 200)
        }
    }

    @Test func noPageOfOthersMayReadIt() async throws {
        let answer = try await admin().ask("GET", "/status", "Origin: http://evil.test\r\n")
        #expect(!answer.fields.contains { $0.name.hasPrefix("access-control") })
        #expect(answer["x-content-type-options"] == "nosniff")
        #expect(answer["cross-origin-resource-policy"] == "same-origin")
        #expect(answer["content-security-policy"]?.hasPrefix("default-src 'none'") == true)
        #expect(answer["cache-control"] == "no-store")
    }

    // MARK: Requests through the proxy

    @Test(arguments: [
        "127.0.0.1", "127.0.0.9", "0.0.0.0", "[::ffff:127.0.0.1]", "localhost", "a.localhost", "origin.test",
        "LOCALHOST.",
    ])
    func itIsNotReachedThroughTheProxy(_ host: String) async throws {
        let shared = try sharedBed()
        let port = try await admin().port
        for target in [port, shared.proxy.port] {
            let answer = try await shared.proxy.connect(to: "\(host):\(target)")
            // Nothing listens on 127.0.0.9.
            #expect(answer.status == 508 || (host == "127.0.0.9" && answer.status == 502), "\(answer)")
            let connection = try RawConnection(to: shared.proxy)
            try await connection.send(
                "GET http://\(host):\(target)/status HTTP/1.1\r\nHost: \(host):\(target)\r\nConnection: close\r\n\r\n")
            let plain = try await connection.response()
            #expect(plain.status == 508 || (host == "127.0.0.9" && plain.status == 502), "\(plain)")
        }
    }

    @Test(arguments: ["[link-local]", "[]"])
    func norByWayOfAParent(_ blocked: String) async throws {
        try await withTestBed { bed in
            let parent = try await ProxyProcess(in: bed, folder: "parent", trust: nil)
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, hosts: ["itself.test": "127.0.0.1"],
                sections: [
                    "admin": ["listen: 127.0.0.1:0"],
                    "upstream": ["parent: http://127.0.0.1:\(parent.port)", "block_addresses: \(blocked)"],
                ])
            let admin = try await AdminClient(proxy)
            for host in ["127.0.0.1", "itself.test", "[::ffff:7f00:1]", "0.0.0.0"] {
                let answer = try await proxy.connect(to: "\(host):\(admin.port)")
                #expect(answer.status == 508, "\(answer)")
            }
        }
    }

    // MARK: The token, TLS and Unix sockets

    @Test func withATokenItObeys() async throws {
        try await withTestBed { bed in
            let token = "0123456789abcdef0123456789abcdef"
            try bed.file("proxy/token", token + "\n")
            let proxy = try await ProxyProcess(
                in: bed, trust: nil,
                sections: ["admin": ["listen: 127.0.0.1:0", "token_file: token", "hosts: [proxy.test]"]])
            let admin = try await AdminClient(proxy)
            #expect(try await admin.ask("GET", "/healthz").status == 200)
            for target in ["/status", "/tasks", "/config"] {
                let refused = try await admin.ask("GET", target)
                #expect(
                    refused.status == 401 && refused["www-authenticate"] == "Bearer realm=\"pinproxy\"", "\(refused)")
            }
            let bearer = "Authorization: Bearer \(token)\r\n"
            #expect(try await admin.ask("GET", "/status", bearer + "Host: proxy.test\r\n").status == 200)
            #expect(try await admin.ask("POST", "/reload").status == 401)
            #expect(try await admin.ask("GET", "/reload", bearer).status == 405)
            #expect(try await admin.ask("POST", "/reload", bearer).status == 200)
            #expect(try await admin.ask("POST", "/learn?stop", bearer).status == 403)
            _ = try await proxy.events.first("config.reload")
            // Another token replaces the first at the next reload.
            try bed.file("proxy/token", "fedcba9876543210fedcba9876543210\n")
            #expect(try await admin.ask("POST", "/reload", bearer).status == 200)
            #expect(try await admin.ask("GET", "/status", bearer).status == 401)
            for event in proxy.events.all { #expect(!event.description.contains("0123456789abcdef")) }
        }
    }

    @Test func itSpeaksTLS() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let chain = ServedChain(try roots.intermediate.issue(TestRoots.template(["proxy.test"])))
            try bed.file("proxy/admin.pem", chain.pem)
            try bed.file("proxy/admin.key", chain.keyPEM)
            try bed.file("proxy/token", "0123456789abcdef0123456789abcdef\n")
            let proxy = try await ProxyProcess(
                in: bed, trust: nil,
                sections: [
                    "admin": [
                        "listen: 127.0.0.1:0", "tls: {certificate: admin.pem, private_key: admin.key}",
                        "token_file: token",
                        "hosts: [proxy.test]",
                    ]
                ])
            let port = try await AdminClient(proxy).port
            let curl = [
                "curl", "-sS", "--noproxy", "*", "--cacert", try roots.write(to: bed), "--resolve",
                "proxy.test:\(port):127.0.0.1",
            ]
            #expect(try await bed.run(curl + ["https://proxy.test:\(port)/healthz"]).output == #"{"status":"alive"}"#)
            let status = try await bed.run(
                curl + [
                    "-H", "Authorization: Bearer 0123456789abcdef0123456789abcdef", "https://proxy.test:\(port)/status",
                ])
            #expect(status.output.contains("\"running\":true"), "\(status)")
            // A client without TLS learns nothing and does no harm.
            let plain = try RawConnection(port: port)
            try await plain.send("GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await !String(decoding: plain.receiveUntilCut().bytes, as: UTF8.self).contains("running"))
            #expect(try await bed.run(curl + ["https://proxy.test:\(port)/healthz"]).succeeded)
        }
    }

    @Test func itListensOnAUnixSocket() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, sections: ["admin": ["listen: unix:admin.sock", "socket_mode: \"0666\""]])
            let path = bed.path("proxy/admin.sock")
            let curl = ["curl", "-sS", "--noproxy", "*", "--unix-socket", path]
            #expect(
                try await bed.run(curl + ["http://localhost/status"]).output.contains("\"admin\":[\"unix:\(path)\"]"))
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o666)
            #expect(try await bed.run(curl + ["-X", "POST", "http://localhost/reload"]).output.contains("token"))
            // After a reload with another path, the first one is removed.
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil,
                sections: ["admin": ["listen: unix:other.sock"]])
            try await proxy.reload()
            #expect(!FileManager.default.fileExists(atPath: path))
            let other = bed.path("proxy/other.sock")
            #expect(try FileManager.default.attributesOfItem(atPath: other)[.posixPermissions] as? Int == 0o600)
            proxy.process.send(signal: SIGTERM)
            #expect(try await proxy.process.ending() == .exited(0))
            #expect(!FileManager.default.fileExists(atPath: other))
        }
    }

    @Test func whatCanNotBeOpenedKeepsWhatWas() async throws {
        try await withTestBed { bed in
            let taken = try ListeningSocket()
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: AdminClient.section)
            let admin = try await AdminClient(proxy)
            try bed.file("proxy/plain", "no socket")
            for (place, cause) in [
                ("127.0.0.1:\(taken.port)", "already in use"), ("unix:plain", "is not a socket"),
                ("unix:nowhere/a.sock", "its directory is not there"),
            ] {
                try ProxyProcess.write(
                    to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil, sections: ["admin": ["listen: \(place)"]]
                )
                let outcome = try await proxy.reload()
                #expect(outcome.name == "config.error" && outcome["cause"]?.contains(cause) == true, "\(outcome)")
                #expect(try await admin.ask("GET", "/healthz").status == 200)
            }
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil)
            #expect(try await proxy.reload().name == "config.reload")
            try await eventually("the port to be closed") { (try? RawConnection(port: admin.port)) == nil }
        }
    }

    // MARK: Misuse

    @Test func aBodyWithoutEndIsNotRead() async throws {
        let shared = try sharedBed()
        let admin = try await admin()
        let connection = try RawConnection(port: admin.port)
        try await connection.send("POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n")
        let before = try shared.proxy.ownMemory()
        let flood = [UInt8](repeating: 65, count: 1 << 20)
        for _ in 1...256 {
            do { try await connection.send(flood) } catch { break }
        }
        #expect(try shared.proxy.ownMemory() < before + (16 << 20))
        #expect(try await admin.ask("GET", "/healthz").status == 200)
    }

    @Test func aThousandSlowClientsKeepNobodyOut() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: AdminClient.section)
            let admin = try await AdminClient(proxy)
            let before = try proxy.openDescriptors()
            var crowd: [RawConnection] = []
            for number in 1...1000 {
                guard let connection = try? RawConnection(port: admin.port) else { continue }
                // Part of a request, or many requests with answers that aren't read.
                let bytes =
                    number.isMultiple(of: 3)
                    ? "GET /st" : String(repeating: "GET /config HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 50)
                if number.isMultiple(of: 2) { try? await connection.send(bytes) }
                if number > 900 { crowd.append(connection) }
                if number.isMultiple(of: 100) { #expect(try await admin.ask("GET", "/healthz").status == 200) }
                if number.isMultiple(of: 50) {
                    #expect(try await admin.ask("GET", "/metrics").body.contains("pinproxy_build_info"))
                }
            }
            try await eventually("most to be gone") { try proxy.openDescriptors() <= before + 66 }
            crowd = []
            try await eventually("the connections to be gone") { try proxy.openDescriptors() <= before }
        }
    }
}
