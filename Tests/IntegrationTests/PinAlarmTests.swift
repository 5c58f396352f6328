import Foundation
import Testing

/// A single pin failure must show, whatever else happens: in the metrics for alerts, in `pinproxy status` and on the
/// status page.
@Suite(.timeLimit(.minutes(5)))
struct PinAlarmTests {
    private static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().path

    private static let pins = """
        hosts:
          - {match: pinned.test, pinning: public-key, pins: [\(String.wrongPin)]}
          - {match: "*.reported.test", pinning: public-key, pins: [\(String.wrongPin)], enforcement: report}
          - {match: denied.test, action: deny}

        """

    private struct Bed {
        let shared: SharedBed
        let admin: AdminClient

        init(_ bed: TestBed, pins: String = PinAlarmTests.pins, sections: ProxyProcess.Sections = [:]) async throws {
            shared = try await OriginBed.prepare(
                bed, pins: pins, sections: AdminClient.section.merging(sections) { $1 },
                hosts: ["pinned.test": "127.0.0.1", "a.reported.test": "127.0.0.1"])
            admin = try await AdminClient(shared.proxy)
        }

        /// The samples, by their names and labels.
        func metrics() async throws -> [String: Double] {
            let answer = try await admin.ask("GET", "/metrics")
            guard answer.status == 200 else { throw TestBedError("\(answer)") }
            let samples = answer.body.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
                line -> (String, Double)? in
                guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else {
                    return nil
                }
                return (String(line[..<space]), value)
            }
            return Dictionary(samples) { $1 }
        }

        func fail(times: Int = 1) async throws {
            for _ in 0..<times {
                #expect(try await shared.proxy.connect(to: "pinned.test:\(shared.originPort)").status == 502)
            }
        }

        /// More refusals than all workers keep.
        func deny(times: Int = 300) async throws {
            let connection = try RawConnection(to: shared.proxy)
            try await connection.connectDenied(Array(repeating: "denied.test:443", count: times))
        }
    }

    // MARK: Metrics

    /// An increase only shows to a scraper that saw the earlier value.
    @Test func seriesAreThereBeforeTheirFirstCount() async throws {
        try await withTestBed { bed in
            let alarm = try await Bed(bed)
            let fresh = try await alarm.metrics()
            for entry in ["pinned.test", "*.reported.test", "(others)"] {
                for result in ["matched", "missed", "reported"] {
                    #expect(
                        fresh["pinproxy_pin_checks_total{entry=\"\(entry)\",result=\"\(result)\"}"] == 0,
                        "\(entry) \(result)")
                }
            }
            #expect(
                !fresh.keys.contains { $0.hasPrefix("pinproxy_pin_checks") && $0.contains("denied.test") },
                "it has no pins")
            for error in [
                "tls_certificate_error", "dns_error", "connection_refused", "http_request_denied",
                "http_response_timeout",
            ] {
                #expect(fresh["pinproxy_refusals_total{error=\"\(error)\"}"] == 0, "\(error)")
            }
            for outcome in ["completed", "refused", "broken"] {
                let name = "pinproxy_exchanges_total{entry=\"(defaults)\",protocol=\"http/1.1\",outcome=\"\(outcome)\"}"
                #expect(fresh[name] == 0, "\(outcome)")
            }
            // Every counter, whatever its labels.
            #expect(fresh.filter { $0.key.contains("_total") && $0.value > 0 && !$0.key.hasPrefix("process_") }.isEmpty)
            // An entry that a reload brings.
            let more = "  - {match: new.test, pinning: public-key, pins: [\(String.wrongPin)]}\n"
            try bed.file("proxy/pins.yaml", Self.pins + more)
            #expect(try await alarm.shared.proxy.reload().name == "config.reload")
            #expect(try await alarm.metrics()["pinproxy_pin_checks_total{entry=\"new.test\",result=\"missed\"}"] == 0)
            try await alarm.fail()
            #expect(
                try await alarm.metrics()["pinproxy_pin_checks_total{entry=\"pinned.test\",result=\"missed\"}"] == 1)
            // A removed entry keeps its counts.
            try bed.file("proxy/pins.yaml", "hosts: []\n")
            #expect(try await alarm.shared.proxy.reload().name == "config.reload")
            #expect(
                try await alarm.metrics()["pinproxy_pin_checks_total{entry=\"pinned.test\",result=\"missed\"}"] == 1)
        }
    }

    /// More entries than may have their own series: the others share one, which also exists from the start.
    @Test func entriesWithPinsHaveTheirSeriesFirst() async throws {
        try await withTestBed { bed in
            let denied = (0..<1000).map { "  - {match: d\($0).test, action: deny}\n" }.joined()
            let pinned = (0..<1100).map {
                "  - {match: p\($0).test, pinning: public-key, pins: [\(String.wrongPin)]}\n"
            }.joined()
            let alarm = try await Bed(bed, pins: "hosts:\n" + denied + pinned)
            let fresh = try await alarm.metrics()
            func missed(_ entry: String) -> Double? {
                fresh["pinproxy_pin_checks_total{entry=\"\(entry)\",result=\"missed\"}"]
            }
            #expect(missed("p0.test") == 0 && missed("p999.test") == 0)
            #expect(missed("p1000.test") == nil && missed("(others)") == 0)
        }
    }

    /// The tests of the shipped alerts start like a fresh proxy: the series that they assume exist, with that value.
    @Test func theTestsOfTheAlertsBeginAsAProxyDoes() async throws {
        try await withTestBed { bed in
            let text = try String(contentsOfFile: Self.repository + "/docs/monitoring/alerts_test.yml", encoding: .utf8)
            let series = text.matches(of: /series: '(pinproxy_\w+_total)\{([^}]*)\}', values: '([^' x+]+)/)
                .filter { $0.3 != "_" }
            #expect(series.count >= 4)
            // Except those without an entry, e.g. (defaults).
            let names = Set(series.flatMap { $0.2.matches(of: /entry="([^("][^"]*)"/).map { String($0.1) } }).sorted()
            let entries = names.map { "  - {match: \($0), pinning: public-key, pins: [\(String.wrongPin)]}\n" }.joined()
            let fresh = try await Bed(bed, pins: "hosts:\n" + entries).metrics()
            for one in series {
                let labels = one.2.replacing(/(instance|job)="[^"]*",? ?/, with: "").replacing(", ", with: ",")
                let sample = "\(one.1){\(labels)}"
                #expect(fresh[sample] == Double(one.3), "\(sample)")
            }
        }
    }

    // MARK: Reports

    private struct Status: Decodable {
        struct Hour: Decodable {
            struct Entry: Decodable {
                let entry: String
                let missed: Int
                let reported: Int
            }

            let requests: Int
            let refused: Int
            let pinsMissed: Int
            let pinsReported: Int
            let pinFailures: [Entry]
        }

        struct Event: Decodable {
            let host: String
            let kind: String
            let pinFailure: Bool?
        }

        let lastHour: Hour
        let recent: [Event]
    }

    private func status(_ alarm: Bed) async throws -> Status {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let answer = try await alarm.admin.ask("GET", "/status")
        return try decoder.decode(Status.self, from: Data(answer.body.utf8))
    }

    /// 300 denied clients don't push a pin failure out.
    @Test func aFloodOfRefusalsHidesNothing() async throws {
        try await withTestBed { bed in
            let alarm = try await Bed(bed)
            try await alarm.fail()
            let port = alarm.shared.originPort
            #expect(try await alarm.shared.proxy.connect(to: "a.reported.test:\(port)").status == 200)
            try await alarm.deny()
            let status = try await status(alarm)
            #expect(status.lastHour.pinsMissed == 1 && status.lastHour.pinsReported == 1)
            #expect(status.lastHour.refused == 301)
            #expect(status.lastHour.pinFailures.map(\.entry) == ["pinned.test", "*.reported.test"])
            let failures = status.recent.filter { $0.pinFailure == true }
            #expect(
                Set(failures.map { "\($0.kind) \($0.host)" }) == ["refused pinned.test", "reported a.reported.test"])
            #expect(status.recent.count <= 100)
            let run = try await TaskControl(bed: bed, proxy: alarm.shared.proxy).pinproxy("status")
            let lines = run.output.split(separator: "\n")
            #expect(lines.contains { $0.hasPrefix("refused 20") && $0.contains("CONNECT pinned.test: ") }, "\(run)")
            #expect(lines.contains("pins failed in the last hour: pinned.test: 1 connection refused"), "\(run)")
            #expect(
                lines.contains(
                    "pins failed in the last hour: *.reported.test: 0 connections refused, 1 reported and let through"),
                "\(run)")
            #expect(lines.contains("in the last hour: 301 requests, 301 of them refused"), "\(run)")
        }
    }

    /// The counts include failures that are no longer kept.
    @Test func allOfTheLastHourAreCounted() async throws {
        try await withTestBed { bed in
            let alarm = try await Bed(bed, sections: ["proxy": ["workers: 1"]])
            try await alarm.fail(times: 101)
            let status = try await status(alarm)
            #expect(status.lastHour.pinsMissed == 101)
            #expect(status.lastHour.pinFailures.first?.missed == 101)
            #expect(status.recent.count < 101)
        }
    }

    /// What the status page's feed sends to a watcher that connects after the flood.
    @Test func theFeedTellsLatecomers() async throws {
        try await withTestBed { bed in
            let alarm = try await Bed(bed)
            try await alarm.fail()
            try await alarm.deny()
            let feed = try RawConnection(port: alarm.admin.port)
            try await feed.send("GET /events HTTP/1.1\r\nHost: 127.0.0.1:\(alarm.admin.port)\r\n\r\n")
            var text = ""
            while !text.contains("\"last_hour\"") || !text.hasSuffix("\n\n") {
                text += String(decoding: try await feed.receive(), as: UTF8.self)
            }
            #expect(text.contains("\"pins_missed\":1"), "\(text)")
            #expect(text.contains("\"pin_failure\":true") && text.contains("pinned.test"), "\(text)")
        }
    }

    /// A real browser opens the page after the flood, and follows the banner.
    @Test func thePageShowsIt() async throws {
        try await withTestBed { bed in
            let alarm = try await Bed(bed)
            try await alarm.fail()
            try await alarm.deny()
            let page = try await bed.run([
                "/usr/bin/python3", "-u", PythonPeer.path("page.py"), "http://127.0.0.1:\(alarm.admin.port)/",
                "--profile",
                bed.path("profile"), "--follow", "Pins fail", "--wait-for", "pinned.test",
            ])
            let line = page.output.split(separator: "\n").last { $0.contains("\"done\"") } ?? ""
            #expect(page.succeeded && line.contains("\"headline\": \"Pins fail\""), "\(page)")
            #expect(line.contains("pinned.test: 1 connection refused in the last hour."), "\(line)")
        }
    }

    // MARK: Trials

    /// `pinproxy doctor`, and any other request for the test hosts, raises no alarm.
    @Test func theTestHostsAreNotCounted() async throws {
        try await withTestBed { bed in
            let alarm = try await Bed(bed)
            for port in [443, 8443] {
                #expect(try await alarm.shared.proxy.connect(to: "wrong.pinproxy.test:\(port)").status == 502)
            }
            #expect(try await alarm.shared.curl("http://pinproxy.test/").output.contains("this host; use https://"))
            // A client that doesn't trust the authority, and one that does.
            let careful = try await bed.run(
                ["curl", "-sS", "--proxy", alarm.shared.proxy.url, "https://pinproxy.test/"],
                environment: ["SSL_CERT_FILE": "/dev/null"])
            #expect(!careful.succeeded)
            #expect(try await alarm.shared.curl("https://pinproxy.test/").succeeded)
            let doctor = try await bed.run(
                [ProxyProcess.executable, "doctor", "--config", bed.path("proxy/pinproxy.yaml"), "curl"],
                environment: ProxyProcess.environment(in: bed))
            #expect(doctor.output.contains("curl"), "\(doctor)")
            let metrics = try await alarm.metrics()
            let counted = metrics.filter { $0.value > 0 && $0.key.hasPrefix("pinproxy_") && $0.key.contains("_total") }
            #expect(
                counted.keys.allSatisfy {
                    $0.hasPrefix("pinproxy_leaves_issued") || $0.hasPrefix("pinproxy_name_lookups")
                }, "\(counted)")
            let status = try await status(alarm)
            #expect(status.recent.isEmpty, "\(status.recent)")
            #expect(status.lastHour.refused == 0 && status.lastHour.requests == 0 && status.lastHour.pinsMissed == 0)
            // Another host is.
            try await alarm.fail()
            #expect(try await self.status(alarm).lastHour.pinsMissed == 1)
        }
    }

    /// A trial by a client that must authenticate first.
    @Test func aTrialWithoutItsPasswordIsNotCountedEither() async throws {
        try await withTestBed { bed in
            try await AuthenticationBed.usersFile(in: bed, folder: "proxy")
            let alarm = try await Bed(bed, sections: ["proxy": ["users: users"]])
            #expect(try await alarm.shared.proxy.connect(to: "wrong.pinproxy.test:443").status == 407)
            #expect(try await status(alarm).recent.isEmpty)
            #expect(try await alarm.metrics()["pinproxy_refusals_total{error=\"http_request_denied\"}"] == 0)
            #expect(try await alarm.shared.proxy.connect(to: "pinned.test:443").status == 407)
            #expect(try await status(alarm).recent.count == 1)
        }
    }
}
