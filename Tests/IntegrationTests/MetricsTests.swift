import Foundation
import Testing

/// `/metrics` of a proxy with something to report, read by Prometheus' own tools.
@Suite(.timeLimit(.minutes(5)))
struct MetricsTests {
    private static let wrong = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().path

    private func prepared(_ bed: TestBed) async throws -> SharedBed {
        let pins = """
            hosts:
              - {match: pinned.test, pinning: public-key, pins: [\(Self.wrong)]}
              - {match: reported.test, pinning: public-key, pins: [\(Self.wrong)], enforcement: report}
              - {match: denied.test, action: deny}
              - {match: tunnelled.test, action: tunnel}
            """
        let names = ["pinned.test", "reported.test", "denied.test", "tunnelled.test"]
        return try await OriginBed.prepare(
            bed, pins: pins, sections: AdminClient.section,
            hosts: Dictionary(uniqueKeysWithValues: names.map { ($0, "127.0.0.1") }))
    }

    private func metrics(_ admin: AdminClient, _ fields: String = "") async throws -> String {
        let answer = try await admin.ask("GET", "/metrics", fields)
        guard answer.status == 200 else { throw TestBedError("\(answer)") }
        return answer.body
    }

    private func value(_ sample: String, in text: String) -> Double? {
        text.split(separator: "\n").first { $0.hasPrefix(sample + " ") }.flatMap {
            Double($0.dropFirst(sample.count + 1))
        }
    }

    @Test func whatHappensIsCounted() async throws {
        try await withTestBed { bed in
            let shared = try await prepared(bed)
            let admin = try await AdminClient(shared.proxy)
            // Three requests over one connection, then each kind of refusal.
            _ = try await shared.curl("--max-time", "120", shared.url + "/a", shared.url + "/b", shared.url + "/c")
            let port = shared.originPort
            #expect(try await shared.proxy.connect(to: "pinned.test:\(port)").status == 502)
            #expect(try await shared.proxy.connect(to: "reported.test:\(port)").status == 200)
            #expect(try await shared.proxy.connect(to: "denied.test:\(port)").status == 403)
            var text = ""
            try await eventually("all to be counted") {
                text = try await metrics(admin)
                return value(
                    "pinproxy_exchanges_total{entry=\"(defaults)\",protocol=\"http/1.1\",outcome=\"completed\"}",
                    in: text) == 3
                    && value("pinproxy_pin_checks_total{entry=\"reported.test\",result=\"reported\"}", in: text) == 1
            }
            #expect(
                value(
                    "pinproxy_exchanges_total{entry=\"(defaults)\",protocol=\"connect\",outcome=\"completed\"}",
                    in: text) == 1)
            #expect(
                value(
                    "pinproxy_exchanges_total{entry=\"pinned.test\",protocol=\"connect\",outcome=\"refused\"}", in: text
                ) == 1)
            #expect(value("pinproxy_pin_checks_total{entry=\"pinned.test\",result=\"missed\"}", in: text) == 1)
            #expect(value("pinproxy_pin_checks_total{entry=\"pinned.test\",result=\"matched\"}", in: text) == 0)
            #expect(value("pinproxy_refusals_total{error=\"tls_certificate_error\"}", in: text) == 1)
            #expect(value("pinproxy_refusals_total{error=\"http_request_denied\"}", in: text) == 1)
            #expect(value("pinproxy_client_handshakes_total{result=\"full\"}", in: text) == 1)
            #expect(
                value("pinproxy_upstream_requests_total{protocol=\"http/1.1\",connection=\"reused\"}", in: text) == 2)
            #expect(value("pinproxy_exchange_duration_seconds_bucket{le=\"+Inf\"}", in: text).map { $0 >= 3 } == true)
            #expect(value("pinproxy_first_byte_seconds_count", in: text) == 3)
            #expect(value("pinproxy_leaves_issued_total", in: text).map { $0 >= 1 } == true)
            #expect(value("pinproxy_config_generation", in: text) == 1)
            #expect(value("pinproxy_config_insecure_switches", in: text) == 1)
            #expect(
                value("pinproxy_worker_up{worker=\"1\"}", in: text) == 1
                    && value("pinproxy_worker_up{worker=\"2\"}", in: text) == 1)
            #expect(!text.contains("origin.test"), "hosts are no labels")
            try await shared.proxy.reload()
            let after = try await metrics(admin)
            #expect(value("pinproxy_config_reloads_total{result=\"accepted\"}", in: after) == 1)
            #expect(value("pinproxy_config_generation", in: after) == 2)
            #expect(
                value("pinproxy_pin_checks_total{entry=\"pinned.test\",result=\"missed\"}", in: after) == 1,
                "a reload loses no count")
        }
    }

    @Test func prometheusReadsIt() async throws {
        try await withTestBed { bed in
            let shared = try await prepared(bed)
            let admin = try await AdminClient(shared.proxy)
            _ = try await shared.curl("--max-time", "120", shared.url + "/a")
            _ = try await shared.proxy.connect(to: "pinned.test:\(shared.originPort)")
            let text = try await metrics(admin)
            let check = try await bed.run(["promtool", "check", "metrics"], input: Array(text.utf8))
            #expect(check.succeeded && check.errors.isEmpty, "\(check)")
            let open = try await admin.ask("GET", "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n")
            #expect(open["content-type"]?.hasPrefix("application/openmetrics-text; version=1.0.0") == true)
            try bed.file("text", text)
            try bed.file("open", open.body)
            let parsed = try await bed.run([
                PythonPeer.pythonWithPackages, "-c",
                """
                from prometheus_client import parser, openmetrics
                import prometheus_client.openmetrics.parser as open_parser
                one = list(parser.text_string_to_metric_families(open('text').read()))
                two = list(open_parser.text_string_to_metric_families(open('open').read()))
                print(len(one) > 30, len(two) == len(one), sorted(f.name for f in one) == sorted(f.name for f in two))
                """,
            ])
            #expect(parsed.output == "True True True", "\(parsed)")
        }
    }

    /// A real Prometheus scrapes, and evaluates the shipped rules.
    @Test func prometheusScrapesItAndItsRulesStrike() async throws {
        try await withTestBed { bed in
            let shared = try await prepared(bed)
            let admin = try await AdminClient(shared.proxy)
            let rules = Self.repository + "/docs/monitoring/alerts.yml"
            let tests = try await bed.run([
                "promtool", "test", "rules", Self.repository + "/docs/monitoring/alerts_test.yml",
            ])
            #expect(tests.succeeded, "\(tests)")
            try bed.file(
                "prometheus.yml",
                """
                global: {scrape_interval: 200ms, evaluation_interval: 200ms}
                rule_files: ['\(rules)']
                scrape_configs:
                  - job_name: pinproxy
                    static_configs: [{targets: ['127.0.0.1:\(admin.port)']}]
                """)
            let prometheus = try await bed.start(
                [
                    "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                    "--web.listen-address=127.0.0.1:0",
                    "--log.format=json",
                ], mergingErrors: true)
            var port: String?
            try await eventually("Prometheus to listen") {
                port = prometheus.output.lines.compactMap {
                    $0.firstMatch(of: /"address":"127\.0\.0\.1:([1-9]\d*)"/)?.1
                }.first.map(String.init)
                return port != nil
            }
            func query(_ text: String) async throws -> String {
                try await bed.run([
                    "curl", "-sS", "--noproxy", "*", "-G", "http://127.0.0.1:\(port ?? "")/api/v1/query",
                    "--data-urlencode", "query=\(text)",
                ]).output
            }
            try await eventually("a scrape") { try await query("up{job=\"pinproxy\"}").contains(",\"1\"]") }
            // The series is there before the first count, so that one is enough.
            try await eventually("the series") {
                try await query("pinproxy_pin_checks_total{result=\"missed\"} == 0").contains("pinned.test")
            }
            _ = try await shared.proxy.connect(to: "pinned.test:\(shared.originPort)")
            try await eventually("the increase") {
                try await query("increase(pinproxy_pin_checks_total{result=\"missed\"}[10m]) > 0").contains(
                    "pinned.test")
            }
            try await eventually("the alert") {
                try await query("ALERTS{alertname=\"PinproxyPinMismatch\"}").contains("\"entry\":\"pinned.test\"")
            }
        }
    }

    /// Up to 1,000 entries have their own series; all others share one.
    @Test func labelsAreBounded() async throws {
        try await withTestBed { bed in
            let pins = "hosts:\n" + (0..<1100).map { "  - {match: h\($0).test, action: deny}\n" }.joined()
            let proxy = try await ProxyProcess(in: bed, pins: pins, trust: nil, sections: AdminClient.section)
            let admin = try await AdminClient(proxy)
            let connection = try RawConnection(to: proxy)
            try await connection.connectDenied((0..<1100).map { "h\($0).test:443" })
            let text = try await metrics(admin)
            func refused(_ entry: String) -> Double? {
                value(
                    "pinproxy_exchanges_total{entry=\"\(entry)\",protocol=\"http/1.1\",outcome=\"refused\"}", in: text)
            }
            // Refused by an entry, and counted there.
            #expect(refused("h0.test") == 1 && refused("h999.test") == 1)
            #expect(refused("h1000.test") == nil && refused("(others)") == 100)
            #expect(refused("(defaults)") == nil || refused("(defaults)") == 0)
            let labels = Set(text.matches(of: /entry="([^"]*)"/).map { String($0.1) })
            #expect(labels.subtracting(["(defaults)", "(others)"]).count == 1000)
            // The limit holds across a new pin file.
            let fresh = "hosts:\n" + (0..<100).map { "  - {match: n\($0).test, action: deny}\n" }.joined()
            try ProxyProcess.write(to: bed, folder: "proxy", pins: fresh, trust: nil, sections: AdminClient.section)
            #expect(try await proxy.reload().name == "config.reload")
            try await connection.send("CONNECT n1.test:443 HTTP/1.1\r\nHost: n1.test:443\r\n\r\n")
            #expect(try await connection.response().status == 403)
            #expect(try await !metrics(AdminClient(proxy)).contains("n1.test"))
        }
    }
}
