import Foundation
import PinproxyTestAuthority
import Testing

/// What is known about a refused origin: where it is reported, and what is kept.
@Suite(.timeLimit(.minutes(5)))
struct IncidentTests {
    /// A proxy with an entry for `api.test`, and `openssl s_server` at the same port of every loopback address.
    private struct Bed {
        let bed: TestBed
        let roots: TestRoots
        let proxy: ProxyProcess
        let admin: AdminClient
        let port: UInt16
        var server: ChildProcess

        var control: TaskControl { TaskControl(bed: bed, proxy: proxy) }

        init(_ bed: TestBed, _ leaf: HeldCertificate, roots: TestRoots, pins: String) async throws {
            self.bed = bed
            self.roots = roots
            (server, port) = try await Self.serve(leaf, in: bed, port: 0)
            proxy = try await ProxyProcess(
                in: bed, pins: pins, trust: roots.write(to: bed), hosts: ["api.test": "127.0.0.1"],
                sections: AdminClient.section)
            admin = try await AdminClient(proxy)
        }

        private static func serve(
            _ leaf: HeldCertificate, in bed: TestBed, port: UInt16, _ options: [String] = []
        ) async throws -> (ChildProcess, UInt16) {
            let chain = ServedChain(leaf)
            let certificate = try bed.file("s_server.pem", chain.pem)
            let key = try bed.file("s_server.key", chain.keyPEM)
            let server = try await bed.start(
                [
                    "openssl", "s_server", "-accept", "0.0.0.0:\(port)", "-cert", certificate, "-cert_chain",
                    certificate, "-key", key, "-www",
                ] + options)
            // It only names a port that the system chose.
            let chosen = try await server.output.first(awaiting: "s_server's port") { line in
                line.hasPrefix("ACCEPT") ? line.split(separator: ":").last.flatMap { UInt16($0) } ?? port : nil
            }
            return (server, chosen)
        }

        /// Another chain at the same port.
        mutating func serve(_ leaf: HeldCertificate, _ options: String...) async throws {
            await server.stop()
            (server, _) = try await Self.serve(leaf, in: bed, port: port, options)
        }

        /// Moves the host, and makes the proxy forget its old address.
        func move(to address: String) async throws {
            try bed.file("proxy/hosts", "\(address) api.test\n")
            #expect(try await proxy.reload().name == "config.reload")
        }

        func connect() async throws -> RawResponse { try await proxy.connect(to: "api.test:\(port)") }

        func json(_ arguments: String...) async throws -> [String: Any] {
            let run = try await bed.run(
                [ProxyProcess.executable] + arguments + ["--json", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            guard let json = try? JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any] else {
                throw TestBedError("no JSON: \(run)")
            }
            return json
        }

        func incidents() async throws -> [[String: Any]] {
            try #require(try await json("incidents", "list")["incidents"] as? [[String: Any]])
        }

        func open() async throws -> Double {
            let metrics = try await admin.ask("GET", "/metrics").body
            let samples = metrics.split(separator: "\n").filter { $0.hasPrefix("pinproxy_incidents_open{") }
            #expect(!samples.isEmpty)
            return samples.reduce(0) { $0 + (Double($1.split(separator: " ").last ?? "") ?? 0) }
        }

        /// The text at the top of the page, in a real browser.
        func expectPage(_ headline: String) async throws {
            let page = try await bed.run([
                "/usr/bin/python3", "-u", PythonPeer.path("page.py"), "http://127.0.0.1:\(admin.port)/",
                "--profile", bed.path("profile-\(UUID())"),
            ])
            #expect(page.succeeded && page.output.contains("\"headline\": \"\(headline)\""), "\(page)")
        }

        func health() async throws -> Int {
            let status = try JSONSerialization.jsonObject(with: Data(try await admin.ask("GET", "/status").body.utf8))
            return ((status as? [String: Any])?["open_incidents"] as? Int) ?? -1
        }
    }

    private static func entry(_ pin: String, _ more: String = "") -> String {
        "hosts:\n  - {match: api.test, pinning: public-key, pins: [\(pin)]\(more)}\n"
    }

    // MARK: Reports

    @Test(arguments: ["-tls1_3", "-tls1_2"])
    func aRefusalNamesTheConnectionEverywhere(version: String) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("api.test")
            var test = try await Bed(bed, leaf, roots: roots, pins: Self.entry(.wrongPin))
            let template = StatusTemplate().with {
                $0.thisUpdate = TestRoots.now - 60
                $0.nextUpdate = TestRoots.now + 3600
            }
            let response = try roots.intermediate.statusResponse(for: leaf, template)
            try await test.serve(leaf, version, "-status_file", try bed.file("status.der", response))
            let spoken = version == "-tls1_3" ? "TLS 1.3" : "TLS 1.2"
            let cipher = version == "-tls1_3" ? "TLS_" : "ECDHE-"
            let address = "127.0.0.1:\(test.port)"

            // The client's answer.
            var answers: [RawResponse] = []
            let event = try await test.proxy.events.firstNamingProgram("pin.mismatch") {
                answers.append(try await test.connect())
            }
            let answer = try #require(answers.last)
            #expect(answer.status == 502)
            let problem = try #require(
                try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any], "\(answer)")
            let connection = try #require(problem["connection"] as? [String: Any], "\(answer)")
            #expect(connection["address"] as? String == address)
            #expect(connection["resolved"] as? [String] == ["127.0.0.1"])
            #expect((connection["resolver"] as? String)?.contains("hosts file") == true)
            #expect(connection["tls_version"] as? String == spoken)
            #expect((connection["cipher"] as? String)?.hasPrefix(cipher) == true, "\(connection)")
            // TLS 1.2 settles the group after the certificate.
            #expect((connection["tls_group"] == nil) == (version == "-tls1_2"), "\(connection)")
            let client = try #require(problem["client"] as? [String: Any])
            #expect(client["uid"] as? Int == Int(getuid()))
            #expect((client["program"] as? String)?.contains("/") == true, "found before it was answered: \(client)")
            let task = try #require(problem["task"] as? Int)
            let text = try #require(problem["detail"] as? String)
            #expect(text.contains("The connection:\n  address   \(address)\n"), "\(text)")
            #expect(text.contains("  task      \(task)"), "\(text)")
            let page = try await test.proxy.connect(to: "api.test:\(test.port)", fields: "Accept: text/html\r\n")
            #expect(page.body.contains("<pre>The connection:\n  address   \(address)"), "\(page)")

            // The log.
            #expect(event["address"] == address && event["resolved"] == "127.0.0.1", "\(event)")
            #expect(event["resolver"]?.contains("hosts file") == true && event["tls_version"] == spoken, "\(event)")
            #expect(event["cipher"]?.hasPrefix(cipher) == true && event["task"] == "\(task)", "\(event)")
            #expect(event["client_uid"] == "\(getuid())" && event["client_exe"]?.hasPrefix("/") == true, "\(event)")
            let id = try #require(event["incident"])
            let line = try await test.proxy.events.first("exchange") { $0["task"] == "\(task)" }
            #expect(line["address"] == address && line["resolver"]?.contains("hosts file") == true, "\(line)")
            #expect(line["tls_version"] == spoken && line["cipher"]?.hasPrefix(cipher) == true, "\(line)")
            #expect(line["client_exe"] == event["client_exe"], "\(line)")

            // The status page's data.
            let status = try await test.admin.ask("GET", "/status").body
            #expect(status.contains("The connection:\\n  address   \(address)"), "\(status)")

            // `explain` makes its own connection.
            let explained = try await test.json("explain", "api.test:\(test.port)")
            #expect(explained["address"] as? String == address && explained["tls_version"] as? String == spoken)
            #expect(explained["resolver"] as? String == "hosts file", "\(explained)")
            #expect((explained["cipher"] as? String)?.hasPrefix(cipher) == true)
            let words = try await test.control.pinproxy("explain", "api.test:\(test.port)")
            #expect(words.output.contains("\nconnected \(address), \(spoken), \(cipher)"), "\(words)")
            #expect(words.output.contains("\nresolved  127.0.0.1, from hosts file\n"), "\(words)")
            #expect(!words.output.contains("TLS was not negotiated"), "\(words)")

            // What is kept.
            let shown = try await test.json("incidents", "show", id)
            let incident = try #require(shown["incident"] as? [String: Any])
            let askers = try #require(incident["askers"] as? [[String: Any]])
            #expect(askers.contains { $0["program"] as? String == event["client_exe"] }, "\(askers)")
            #expect((incident["chain"] as? [String])?.first == leaf.pem)
            #expect(incident["verified"] as? Bool == true && incident["entry"] as? String == "api.test")
            // TLS 1.2 staples after the certificates, which are refused.
            let staple = version == "-tls1_3" ? Data(response).base64EncodedString() : nil
            #expect(incident["ocsp_response"] as? String == staple)
        }
    }

    /// A chain that the anchors don't trust, also for a tunnel.
    @Test(arguments: ["intercept", "verify-tunnel"])
    func anUntrustedChainIsAnIncidentToo(action: String) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let other = try TestRoots("Other")
            let pins = "hosts:\n  - {match: api.test, action: \(action)}\n"
            let test = try await Bed(bed, other.leaf("api.test"), roots: roots, pins: pins)
            let event = try await test.proxy.events.firstNamingProgram("trust.failure") {
                _ = try await bed.curl(via: test.proxy, ["https://api.test:\(test.port)/"])
            }
            #expect(event["address"] == "127.0.0.1:\(test.port)" && event["tls_version"] == "TLS 1.3", "\(event)")
            #expect(event["client_exe"]?.contains("curl") == true, "\(event)")
            let incident = try #require(try await test.incidents().first)
            #expect(incident["id"] as? String == event["incident"] && incident["kind"] as? String == "trust")
            #expect(incident["verified"] as? Bool == false)
        }
    }

    // MARK: What is kept

    @Test func anIncidentIsShownExportedAndAcknowledged() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let first = try roots.leaf("api.test")
            let pin = try await first.pin(bed)
            var test = try await Bed(bed, first, roots: roots, pins: Self.entry(pin))
            #expect(try await test.connect().status == 200)
            #expect(try await test.incidents().isEmpty)
            #expect(try await test.open() == 0)

            // An unpinned key, of the same issuer.
            let second = try roots.leaf("api.test")
            try await test.serve(second)
            #expect(try await test.connect().status == 502)
            #expect(try await test.connect().status == 502)
            let incident = try #require(try await test.incidents().first)
            let id = try #require(incident["id"] as? String)
            #expect(incident["refused"] as? Int == 2 && incident["reported"] as? Int == 0, "\(incident)")
            #expect(try await test.open() == 1)
            #expect(try await test.health() == 1)
            try await test.expectPage("Pins fail")
            let opened = try await test.proxy.events.first("incident.open")
            #expect(opened["incident"] == id, "\(opened)")

            let shown = try await test.control.pinproxy("incidents", "show", String(id.prefix(6)))
            #expect(shown.output.contains("another key, signed by the same issuer: most likely a rotation"), "\(shown)")
            #expect(shown.output.contains("The last chain that matched, from"), "\(shown)")
            let list = try await test.control.pinproxy("incidents")
            #expect(list.output.contains("open"), "\(list)")
            #expect(list.output.contains("api.test:\(test.port)"), "\(list)")

            // One file, with certificates that another program finds, and never over another.
            let file = bed.path("for-a-colleague.txt")
            let export = try await test.control.pinproxy("incidents", "export", id, "--output", file)
            #expect(export.succeeded && export.output == file, "\(export)")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            #expect(text.contains(second.pem) && text.contains(first.pem) && text.contains("\"comparison\" : {"))
            let attributes = try FileManager.default.attributesOfItem(atPath: file)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            let found = try await bed.run(["openssl", "storeutl", "-noout", "-certs", file])
            #expect(found.output.contains("Total found: "), "\(found)")
            let again = try await test.control.pinproxy("incidents", "export", id, "--output", file)
            #expect(!again.succeeded && again.errors.contains("is there already, and is not overwritten"), "\(again)")
            #expect(try String(contentsOfFile: file, encoding: .utf8) == text)

            // Once acknowledged, it leaves the page and the alert. The policy still applies.
            let ack = try await test.control.pinproxy("incidents", "ack", String(id.prefix(8)))
            #expect(ack.succeeded && ack.output.contains(id), "\(ack)")
            #expect(try await test.open() == 0)
            #expect(try await test.health() == 0)
            let over = try await test.proxy.events.first("incident.acknowledged")
            #expect(over["incident"] == id && over["cause"]?.contains("user \(getuid())") == true, "\(over)")
            #expect(try await test.connect().status == 502)
            #expect(try await test.open() == 0, "the same chain from the same address")
            try await test.expectPage("Healthy")
            // Another address makes a new incident, and so does another chain.
            try await test.move(to: "127.0.0.2")
            #expect(try await test.connect().status == 502)
            #expect(try await test.open() == 1)
            _ = try await test.control.pinproxy("incidents", "ack", id)
            try await test.serve(try TestRoots("Zscaler").intermediate.issue(TestRoots.template(["api.test"])))
            #expect(try await test.connect().status == 502)
            #expect(try await test.open() == 1)
            let other = try #require(try await test.incidents().first { $0["acknowledged"] == nil })
            let inspected = try await test.json("incidents", "show", try #require(other["id"] as? String))
            let comparison = try #require(inspected["comparison"] as? [String: Any])
            #expect(comparison["kind"] as? String == "inspection", "\(comparison)")

            // Over a restart, and without a proxy.
            test.proxy.process.send(signal: SIGTERM)
            _ = try await test.proxy.process.ending()
            for name in ["incidents.json", "matched.json"] {
                let path = bed.path("proxy/state/pinproxy/\(name)")
                let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
                #expect(mode == 0o600, "\(name)")
            }
            #expect(try await test.incidents().count == 2)
            // Each ID has its outcome, and a wrong one stops none.
            let open = try #require(other["id"] as? String)
            let left = try await test.control.pinproxy("incidents", "ack", "0000", id, "zz", open)
            #expect(left.ending == .exited(1), "\(left)")
            #expect(left.output.contains("acknowledged: \(open) api.test"), "\(left)")
            #expect(left.output.contains("acknowledged already: \(id) api.test"), "\(left)")
            #expect(left.errors.contains("not acknowledged: 0000: there is no incident 0000"), "\(left)")
            #expect(left.errors.contains("not acknowledged: zz: "), "\(left)")
            #expect(try await test.incidents().allSatisfy { $0["acknowledged"] != nil })
        }
    }

    @Test func anIncidentEndsWithItsPin() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("api.test")
            let test = try await Bed(bed, leaf, roots: roots, pins: Self.entry(.wrongPin))
            #expect(try await test.connect().status == 502)
            #expect(try await test.open() == 1)
            try bed.file("proxy/pins.yaml", Self.entry(try await leaf.pin(bed)))
            #expect(try await test.proxy.reload().name == "config.reload")
            #expect(try await test.connect().status == 200)
            #expect(try await test.open() == 0)
            let over = try await test.proxy.events.first("incident.acknowledged")
            #expect(over["cause"]?.contains("the policy accepts the chain now") == true, "\(over)")
        }
    }

    @Test func whatIsOnlyReportedIsMarked() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let test = try await Bed(
                bed, try roots.leaf("api.test"), roots: roots,
                pins: Self.entry(.wrongPin, ", enforcement: report"))
            #expect(try await test.connect().status == 200)
            let event = try await test.proxy.events.first("pin.report")
            #expect(event["address"] == "127.0.0.1:\(test.port)" && event["tls_version"] == "TLS 1.3", "\(event)")
            let incident = try #require(try await test.incidents().first)
            #expect(incident["refused"] as? Int == 0 && incident["reported"] as? Int == 1)
            let shown = try await test.control.pinproxy("incidents", "show", try #require(event["incident"]))
            #expect(shown.output.contains("let through by enforcement: report"), "\(shown)")
            let metrics = try await test.admin.ask("GET", "/metrics").body
            let sample = "pinproxy_incidents_open{entry=\"api.test\",kind=\"pin\",result=\"reported\"} 1"
            #expect(metrics.contains(sample), "\(metrics)")
        }
    }

    /// Any local user can ask for these names.
    @Test func trialsAreNoIncidentsAndAreMarked() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let test = try await Bed(bed, try roots.leaf("api.test"), roots: roots, pins: "hosts: []\n")
            #expect(try await test.proxy.connect(to: "wrong.pinproxy.test:443").status == 502)
            _ = try await test.control.pinproxy("doctor", "curl")
            let event = try await test.proxy.events.first("pin.mismatch")
            #expect(event["trial"] == "1" && event["incident"] == nil, "\(event)")
            let line = try await test.proxy.events.first("exchange") { $0["host"] == "wrong.pinproxy.test" }
            #expect(line["trial"] == "1", "\(line)")
            #expect(try await test.incidents().isEmpty)
            #expect(try await test.open() == 0)
            #expect(try await test.health() == 0)
            // A real one is, and isn't marked.
            _ = try await bed.curl(via: test.proxy, ["https://api.test:\(test.port)/"])
            try await test.expectPage("Healthy")
            try bed.file("proxy/pins.yaml", Self.entry(.wrongPin))
            #expect(try await test.proxy.reload().name == "config.reload")
            #expect(try await test.connect().status == 502)
            let real = try await test.proxy.events.first("pin.mismatch") { $0["host"] == "api.test" }
            #expect(real["trial"] == nil && real["incident"] != nil, "\(real)")
        }
    }

    @Test func wrongQuestionsAreAnswered() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let test = try await Bed(bed, try roots.leaf("api.test"), roots: roots, pins: Self.entry(.wrongPin))
            for (id, words) in [
                ("zz", "20 digits"), ("../../status", "20 digits"), ("0000", "there is no incident 0000"),
            ] {
                let run = try await test.control.pinproxy("incidents", "show", id)
                #expect(!run.succeeded && run.errors.contains(words), "\(run)")
            }
            let none = try await test.control.pinproxy("incidents")
            #expect(none.succeeded && none.output == "no incident is known", "\(none)")
            // The admin port doesn't say who connects where.
            #expect(try await test.admin.ask("GET", "/incidents").status == 403)
            #expect(try await test.control.ask("GET", "/incidents/0000/ack").status == 405)
            #expect(try await test.control.ask("GET", "/incidents/0000/other").status == 404)
        }
    }

    // MARK: Another way

    @Test func aChainIsFetchedThroughAnotherProxy() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("api.test")
            let test = try await Bed(bed, leaf, roots: roots, pins: Self.entry(.wrongPin))
            try await AuthenticationBed.usersFile(in: bed, folder: "other")
            let other = try await ProxyProcess(
                in: bed, folder: "other", pins: "defaults: {action: tunnel}\n", trust: nil,
                hosts: ["api.test": "127.0.0.1"], sections: ["proxy": ["users: users"]])
            try bed.file("password", "ada:secret\n")
            let host = "api.test:\(test.port)"
            let run = try await test.control.pinproxy(
                "pin", host, "--via", other.url, "--via-credentials", bed.path("password"))
            let pin = try await leaf.pin(bed)
            #expect(run.succeeded && run.output.contains(pin), "\(run)")
            _ = try await other.events.first("exchange") { $0["method"] == "CONNECT" && $0["host"] == "api.test" }
            let refused = try await test.control.pinproxy("pin", host, "--via", other.url)
            #expect(!refused.succeeded && refused.errors.contains("407"), "\(refused)")
            // Arguments are visible to everybody.
            let told = try await test.control.pinproxy("pin", host, "--via", "http://ada:secret@127.0.0.1:9")
            #expect(told.ending == .exited(2) && told.errors.contains("--via-credentials"), "\(told)")
            #expect(!told.errors.contains("secret@"), "\(told)")
            let wrong = try await test.control.pinproxy("pin", host, "--via", "socks5://127.0.0.1:9")
            #expect(wrong.ending == .exited(2) && wrong.errors.contains("not an http:// URL"), "\(wrong)")
            try bed.file("empty", "\n")
            let empty = try await test.control.pinproxy(
                "pin", host, "--via", other.url, "--via-credentials", bed.path("empty"))
            #expect(!empty.succeeded && empty.errors.contains("its first line is not USER:PASSWORD"), "\(empty)")
        }
    }
}
