import Foundation
import PinproxyTestAuthority
import Testing

/// Where the protocol of both sides and the streams show: log, tasks, metrics, `explain`, `lint`.
@Suite(.timeLimit(.minutes(5)), .sharedBed(ShownBed.prepare))
struct HTTP2ShownTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    private func url(_ host: String, _ path: String) -> String { "https://\(host):\(shared.ports[host] ?? 0)\(path)" }

    private func line(_ path: String) async throws -> LogEvent {
        try await shared.proxy.events.first("exchange") { $0["path"] == path }
    }

    // MARK: The log

    @Test(arguments: [
        ("h2.test", "--http2", "h2", "h2"), ("h1.test", "--http2", "h2", "http/1.1"),
        ("h2.test", "--http1.1", "http/1.1", "h2"),
        ("h1.test", "--http1.1", "http/1.1", "http/1.1"), ("own.test", "--http2", "h2", "http/1.1"),
        ("h1.test", "--http1.0", "http/1.0", "http/1.1"),
    ]) func theLogNamesBothSides(host: String, option: String, client: String, origin: String) async throws {
        let path = "/\(host)\(option)"
        _ = try await shared.curl(option, url(host, path))
        let line = try await line(path)
        #expect(line["protocol"] == client && line["upstream_protocol"] == origin, "\(line)")
        #expect(
            (line["stream"] != nil) == (client == "h2") && (line["upstream_stream"] != nil) == (origin == "h2"),
            "\(line)")
        if client == "h2" { #expect(line["stream"] == "1", "\(line)") }
    }

    @Test func eachRequestOfAConnectionHasItsStream() async throws {
        let run = try await shared.curl("--http2", url("h2.test", "/first"), url("h2.test", "/second"))
        #expect(run.succeeded, "\(run)")
        let (first, second) = (try await line("/first"), try await line("/second"))
        #expect(first["stream"] == "1" && second["stream"] == "3", "\(first) \(second)")
        // Streams to the origin are numbered per connection.
        #expect(second["upstream_stream"] != nil, "\(second)")
    }

    @Test func aRefusedRequestHasItsProtocolToo() async throws {
        _ = try await shared.curl("--http2", "-H", "Host: other.test", url("h2.test", "/misdirected"))
        let line = try await shared.proxy.events.first("exchange") { $0["path"] == "/misdirected" }
        #expect(line["protocol"] == "h2" && line["status"] == "421" && line["upstream_protocol"] == nil, "\(line)")
    }

    // MARK: Tasks

    @Test func tasksShowBothSides() async throws {
        try await withTestBed { bed in
            let shared = try await ShownBed.prepare(bed)
            let url = "https://h2.test:\(shared.ports["h2.test"] ?? 0)/slow"
            let client = try await bed.start(
                ["curl", "-sS", "--http2", url], environment: shared.proxy.clientEnvironment)
            let task = try await shared.tasks.only { $0.bytesDown > 0 }
            #expect(task.protocol == "h2" && task.stream == 1)
            let way = try #require(task.transactions.first)
            #expect(way.networkProtocol == "h2" && way.stream == 1)
            let text = try await shared.tasks.pinproxy("tasks", "show", "\(task.id)")
            #expect(text.output.contains(", h2, stream 1\nage: "), "\(text)")
            #expect(text.output.contains("127.0.0.1:\(shared.originPort), h2, stream 1, a new connection"), "\(text)")
            let table = try await shared.tasks.pinproxy("tasks")
            #expect(table.output.contains("PROTOCOLS") && table.output.contains("  h2 > h2  "), "\(table)")
            // And open connections are counted by protocol.
            let metrics = try await AdminClient(shared.proxy).ask("GET", "/metrics").body
            for sample in [
                "pinproxy_client_connections_open{protocol=\"h2\"} 1",
                "pinproxy_client_connections_open{protocol=\"http/1.1\"} 0",
                "pinproxy_client_streams_open 1",
                "pinproxy_upstream_connections_open{protocol=\"h2\",state=\"busy\"} 1",
                "pinproxy_upstream_connections_open{protocol=\"http/1.1\",state=\"busy\"} 0",
                "pinproxy_upstream_streams_open 1",
            ] { #expect(metrics.contains("\n\(sample)\n"), "\(sample) is missing in \(metrics)") }
            try await shared.tasks.order("cancel", task.id)
            _ = try await client.ending()
            try await eventually("no stream to be left") {
                let metrics = try await AdminClient(shared.proxy).ask("GET", "/metrics").body
                return metrics.contains("\npinproxy_upstream_connections_open{protocol=\"h2\",state=\"idle\"} 1\n")
                    && metrics.contains("\npinproxy_upstream_streams_open 0\n")
                    && metrics.contains("\npinproxy_client_streams_open 0\n")
            }
        }
    }

    // MARK: Metrics

    @Test func metricsCountExchangesByProtocolOnEachSide() async throws {
        try await withTestBed { bed in
            let shared = try await ShownBed.prepare(bed)
            func url(_ host: String) -> String { "https://\(host):\(shared.ports[host] ?? 0)/hello" }
            _ = try await shared.curl("--http2", url("h2.test"), url("h2.test"), url("h2.test"))
            _ = try await shared.curl("--http2", url("h1.test"))
            _ = try await shared.curl("--http1.1", url("h2.test"))
            let expected = [
                "pinproxy_exchanges_total{entry=\"(defaults)\",protocol=\"h2\",outcome=\"completed\"} 4",
                "pinproxy_exchanges_total{entry=\"(defaults)\",protocol=\"http/1.1\",outcome=\"completed\"} 1",
                "pinproxy_upstream_requests_total{protocol=\"h2\",connection=\"fresh\"} 1",
                "pinproxy_upstream_requests_total{protocol=\"h2\",connection=\"reused\"} 3",
                "pinproxy_upstream_requests_total{protocol=\"http/1.1\",connection=\"fresh\"} 1",
                "pinproxy_upstream_retries_total{reason=\"unprocessed\"} 0",
                "pinproxy_http2_floods_total{peer=\"client\",flood=\"resets\"} 0",
                "pinproxy_http2_protocol_errors_total{peer=\"origin\"} 0",
            ]
            var text = ""
            try await eventually("all to be counted") {
                text = try await AdminClient(shared.proxy).ask("GET", "/metrics").body
                return text.contains("\n\(expected[0])\n") && text.contains("\n\(expected[1])\n")
            }
            for sample in expected { #expect(text.contains("\n\(sample)\n"), "\(sample) is missing in \(text)") }
        }
    }

    // MARK: What peers do to a connection

    @Test func aFloodIsToldOnceWithWhoItWas() async throws {
        try await withTestBed { bed in
            let shared = try await ShownBed.prepare(bed)
            let attacker = try await bed.start(
                [
                    PythonPeer.pythonWithPackages, "-u", PythonPeer.path("http2_attack.py"), "--proxy",
                    "\(shared.proxy.port)",
                    "--ca", shared.proxy.authority, "--authority", "h2.test:\(shared.originPort)", "settings",
                ], mergingErrors: true)
            _ = try await EventLog(lines: attacker.output).first("over")
            let event = try await shared.proxy.events.first("connection.flood")
            #expect(
                event["level"] == "warning" && event["peer"] == "client" && event["flood"] == "settings", "\(event)")
            #expect(
                event["client"]?.hasPrefix("127.0.0.1:") == true && event["client_uid"] == "\(getuid())", "\(event)")
            #expect(
                event["host"] == "h2.test" && event["port"] == "\(shared.originPort)" && event["requests"] == "0",
                "\(event)")
            #expect(
                event["cause"] == "the client floods its HTTP/2 connection: too many SETTINGS or GOAWAY frames",
                "\(event)")
            #expect(
                event["effect"] == "the connection is ended (GOAWAY with ENHANCE_YOUR_CALM), and its requests with it",
                "\(event)")
            let text = try await AdminClient(shared.proxy).ask("GET", "/metrics").body
            #expect(text.contains("\npinproxy_http2_floods_total{peer=\"client\",flood=\"settings\"} 1\n"))
            #expect(shared.proxy.events.all("connection.flood").count == 1)
        }
    }

    @Test func aBreachOfTheProtocolIsToldOnce() async throws {
        try await withTestBed { bed in
            let shared = try await ShownBed.prepare(bed)
            let client = try await HTTP2Client(in: shared, authority: "h2.test:\(shared.originPort)")
            try await client.ping()
            // DATA on no stream (RFC 9113 section 6.1).
            try await client.raw("000000000000000000")
            try await client.closed()
            let event = try await shared.proxy.events.first("connection.failed")
            #expect(
                event["level"] == "warning" && event["peer"] == "client" && event["code"] == "PROTOCOL_ERROR",
                "\(event)")
            #expect(event["cause"]?.hasPrefix("the client breaks the protocol of HTTP/2: ") == true, "\(event)")
            let text = try await AdminClient(shared.proxy).ask("GET", "/metrics").body
            #expect(text.contains("\npinproxy_http2_protocol_errors_total{peer=\"client\"} 1\n"))
            #expect(shared.proxy.events.all("connection.failed").count == 1)
        }
    }

    // MARK: The commands

    private struct Choice: Decodable {
        let offered_protocols: [String]?
        let `protocol`: String?
        let extended_connect: Bool?
    }

    private func explain(_ host: String, _ options: String...) async throws -> Run {
        try await shared.bed.run(
            [
                ProxyProcess.executable, "explain", "--config", shared.bed.path("proxy/pinproxy.yaml"),
                "\(host):\(shared.ports[host] ?? 0)",
            ] + options,
            environment: ProxyProcess.environment(in: shared.bed))
    }

    @Test(
        arguments: [
            (
                "h2.test", ["h2", "http/1.1"], "h2", false,
                "h2, chosen by the host, which was offered h2 and http/1.1; WebSockets go over HTTP/1.1"
            ),
            (
                "h1.test", ["h2", "http/1.1"], "http/1.1", nil,
                "http/1.1, chosen by the host, which was offered h2 and http/1.1"
            ),
            ("own.test", ["http/1.1"], "http/1.1", nil, "http/1.1, chosen by the host, which was offered http/1.1"),
            (
                "only.test", ["h2"], "h2", false,
                "h2, chosen by the host, which was offered h2; WebSockets can't reach it: it takes none over HTTP/2"
            ),
        ] as [(String, [String], String, Bool?, String)])
    func explainNamesOfferAndChoice(
        host: String, offer: [String], chosen: String, extended: Bool?, words: String
    ) async throws {
        let json = try await explain(host, "--json")
        let found = try JSONDecoder().decode(Choice.self, from: Data(json.output.utf8))
        #expect(
            found.offered_protocols == offer && found.protocol == chosen && found.extended_connect == extended,
            "\(json)")
        let text = try await explain(host)
        #expect(text.output.contains("protocol  \(words)\n"), "\(text)")
    }

    @Test func explainSaysWhatRulesMakeOfAPath() async throws {
        let text = try await explain("own.test", "--path", "/a")
        #expect(text.output.contains("  session.http: [http/1.1]  (entry, "), "\(text)")
        #expect(text.output.contains("over HTTP/1.1, on a separate connection"), "\(text)")
    }

    @Test func lintWarnsOfUpgradesThatReachNobody() async throws {
        try await withTestBed { bed in
            let shared = try await ShownBed.prepare(bed)
            let port = shared.originPort
            try ProxyProcess.write(
                to: bed, folder: "linted",
                pins: """
                    hosts:
                      - {match: 'only.test:\(port)', session: {http: [h2]}}
                      - {match: 'own.test:\(port)', session: {http: [http/1.1]}}
                      - {match: 'h2.test:\(port)'}
                    """, trust: bed.path("roots.pem"))
            let run = try await bed.run(
                [ProxyProcess.executable, "lint", "--json", "--config", bed.path("linted/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            struct Finding: Decodable {
                let rule: String
                let severity: String
                let entry: String?
                let message: String
            }
            let found = try JSONDecoder().decode([Finding].self, from: Data(run.output.utf8))
            let upgrades = found.filter { $0.rule == "no-upgrades" }
            #expect(upgrades.map(\.entry) == ["only.test:\(port)"] && upgrades.first?.severity == "note", "\(run)")
            #expect(!found.contains { $0.entry == "own.test:\(port)" }, "\(run)")
        }
    }

    @Test func theConfigurationInForceIsShown() async throws {
        let object = try await AdminClient(shared.proxy).object("/config")
        #expect((object["settings"] as? [String: String])?["proxy.http"] == "[h2, http/1.1]", "\(object)")
        let entries = try #require(object["entries"] as? [[String: Any]])
        let rules = entries.flatMap { $0["rules"] as? [String] ?? [] }
        #expect(
            rules.map { $0.prefix { $0 != "(" } } == ["session.http: [http/1.1] ", "session.http: [h2] "], "\(entries)")
    }
}

private enum ShownBed {
    /// `h2.test` and `own.test` of an nginx that speaks HTTP/2, `h1.test` of one that doesn't. `/slow` never ends.
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        func site(_ name: String) throws -> NginxOrigin.Site { try .init(name: name, chain: roots.chain(name)) }
        let slow = "location /slow { alias /usr/bin/python3; limit_rate 100; }"
        let second = try await NginxOrigin(
            in: bed, sites: [site("h2.test"), site("own.test"), site("only.test")], locations: slow, http2: true)
        let first = try await NginxOrigin(in: bed, folder: "nginx1", sites: [site("h1.test")], locations: slow)
        let names = ["h1.test", "h2.test", "own.test", "only.test"]
        let proxy = try await ProxyProcess(
            in: bed,
            pins: """
                hosts:
                  - {match: own.test, session: {http: [http/1.1]}}
                  - {match: only.test, session: {http: [h2]}}
                """, trust: roots.write(to: bed),
            hosts: Dictionary(uniqueKeysWithValues: names.map { ($0, "127.0.0.1") }),
            // One, so that all requests of an origin share its connections.
            sections: AdminClient.section.merging(["proxy": ["workers: 1"]]) { $1 })
        return SharedBed(
            bed: bed, proxy: proxy, originPort: second.port,
            ports: ["h1.test": first.port, "h2.test": second.port, "own.test": second.port, "only.test": second.port])
    }
}
