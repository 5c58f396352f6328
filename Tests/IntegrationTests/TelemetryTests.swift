import Foundation
import PinproxyTestAuthority
import Testing

/// Metrics and events at a collector that parses with opentelemetry-proto's definitions, and collectors that fail.
@Suite(.timeLimit(.minutes(5)))
struct TelemetryTests {
    private struct Bed {
        let bed: TestBed
        let collector: PythonPeer
        let shared: SharedBed
        let pins: String
        private let trust: String

        static let names = ["collector.test", "pinned.test", "reported.test", "fine.test"]

        /// - Parameter collectorPins: of the collector's own entry.
        init(
            _ bed: TestBed, behaviour: String = "200", _ more: [String] = [], collectorPins: String? = nil
        ) async throws {
            self.bed = bed
            let roots = try TestRoots()
            let chain = ServedChain(try roots.leaf("collector.test"))
            try bed.file("behaviour", behaviour + "\n")
            collector = try await PythonPeer(
                in: bed, script: "otlp_collector.py",
                [
                    "--behaviour", bed.path("behaviour"), "--certificate", try bed.file("collector.pem", chain.pem),
                    "--key", try bed.file("collector.key", chain.keyPEM),
                ], interpreter: PythonPeer.pythonWithPackages)
            pins =
                "hosts:\n" + Self.entry("pinned.test") + Self.entry("reported.test", more: "    enforcement: report\n")
                + (collectorPins.map { Self.entry("collector.test", pin: $0) } ?? "")
            let token = try bed.file("proxy/token", "Bearer s3cret-of-the-collector\n")
            chmod(token, 0o600)
            trust = try roots.write(to: bed)
            shared = try await OriginBed.prepare(
                bed, pins: pins,
                sections: ["telemetry": Self.lines(collector.port, more), "admin": ["listen: 127.0.0.1:0"]],
                hosts: Dictionary(uniqueKeysWithValues: Self.names.map { ($0, "127.0.0.1") }), roots: roots)
        }

        private static func entry(_ name: String, pin: String = .wrongPin, more: String = "") -> String {
            "  - match: \(name)\n    pinning: public-key\n    pins: [\"\(pin)\"]\n" + more
        }

        private static func lines(_ port: UInt16, _ more: [String]) -> [String] {
            ["otlp: https://collector.test:\(port)", "authorization_file: token"] + more
        }

        func behave(_ words: String) throws { try bed.file("behaviour", words + "\n") }

        /// With new settings the collector is contacted at once.
        func reload(_ more: String...) async throws {
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: pins, trust: trust,
                sections: ["telemetry": Self.lines(collector.port, more), "admin": ["listen: 127.0.0.1:0"]])
            #expect(try await shared.proxy.reload().name == "config.reload")
        }

        func connect(_ name: String) async throws -> Int {
            try await shared.proxy.connect(to: "\(name):\(shared.originPort)").status
        }

        func metrics() async throws -> String { try await AdminClient(shared.proxy).ask("GET", "/metrics").body }
    }

    @Test func figuresAndEventsArrive() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, ["attributes: {site: Berlin}"])
            let (collector, proxy) = (bed.collector.events, bed.shared.proxy)
            let first = try await collector.first("metrics")
            #expect(first["service.name"] == "pinproxy" && first["site"] == "Berlin", "\(first)")
            #expect(first["type"] == "application/x-protobuf")
            #expect(first["authorization"] == "Bearer s3cret-of-the-collector")
            #expect(
                first["points"]?.contains("pinproxy_pin_checks{entry=(others),result=missed} 0") == true, "\(first)")

            #expect(try await bed.connect("pinned.test") == 502)
            #expect(try await bed.connect("reported.test") == 200)
            #expect(try await proxy.connect(to: "wrong.pinproxy.test:443").status == 502)
            try await bed.reload("attributes: {site: Rome}")
            let mismatch = try await collector.first("log") { $0["name"] == "pin.mismatch" }
            #expect(mismatch["a.host"] == "pinned.test" && mismatch["a.port"] == "\(bed.shared.originPort)")
            #expect(mismatch["severity"] == "13" && mismatch["service.name"] == "pinproxy", "\(mismatch)")
            #expect(mismatch["body"]?.hasPrefix("pin.mismatch: ") == true)
            let logged = try await proxy.events.first("pin.mismatch") { $0["host"] == "pinned.test" }
            #expect(logged["cause"] == mismatch["a.cause"] && logged["incident"] == mismatch["a.incident"])
            _ = try await collector.first("log") { $0["name"] == "pin.report" && $0["a.host"] == "reported.test" }
            _ = try await collector.first("log") { $0["name"] == "incident.open" && $0["a.host"] == "pinned.test" }
            let figures = try await collector.first("metrics") { $0["site"] == "Rome" }["points"] ?? ""
            for point in [
                "pinproxy_pin_checks{entry=pinned.test,result=missed} 1",
                "pinproxy_pin_checks{entry=reported.test,result=reported} 1",
                // At the time of the first figures.
                "pinproxy_pin_checks{entry=pinned.test,result=missed} 0",
                "pinproxy_incidents_open{entry=pinned.test,kind=pin,result=refused} 1",
                "pinproxy_refusals{error=tls_certificate_error} 1",
                "pinproxy_config_report_only_entries{} 1",
            ] { #expect(figures.contains(point), "\(point) is not in \(figures)") }
            #expect(!collector.all.contains { "\($0)".contains("pinproxy.test") })
            #expect(collector.all("invalid").isEmpty, "\(collector.all("invalid"))")
            try await whatIsShown(bed, figures)
        }
    }

    /// The same digest as at the collector, and never the token.
    private func whatIsShown(_ bed: Bed, _ figures: String) async throws {
        let status = try await TaskControl(bed: bed.bed, proxy: bed.shared.proxy).pinproxy("status")
        let place = "https://collector.test:\(bed.collector.port)"
        #expect(status.output.contains("collector: \(place)"), "\(status)")
        let text = try await bed.metrics()
        let digest = text.firstMatch(of: /pinproxy_config_info{digest="(\w+)"/)?.output.1 ?? "none"
        #expect(figures.contains("pinproxy_config_info{digest=\(digest),"), "\(digest)")
        #expect(text.contains("pinproxy_telemetry_failures_total{signal=\"logs\"} 0"), "\(text)")
        let configuration = try await AdminClient(bed.shared.proxy).ask("GET", "/config").body
        #expect(configuration.contains("\"telemetry.authorization_file\":\"set\""), "\(configuration)")
        for shown in [status.output, text, configuration] { #expect(!shown.contains("s3cret")) }
        #expect(!bed.shared.proxy.events.lines.lines.joined().contains("s3cret"))
    }

    /// A collector with a chain that matches no pin of its entry gets nothing.
    @Test func pinsOfTheCollectorHold() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, collectorPins: .wrongPin)
            let failure = try await bed.shared.proxy.events.first("telemetry.failed")
            #expect(failure["url"]?.hasPrefix("https://collector.test:") == true, "\(failure)")
            #expect(failure["cause"]?.contains("pin") == true, "\(failure)")
            try await bed.shared.servesOthers()
            #expect(bed.collector.events.all("request").isEmpty)
        }
    }

    /// A failure affects nothing else, and what may be sent again arrives once the collector works.
    @Test(arguments: ["503", "retry 429 1", "reset", "long", "silent", "400", "200 <html>"])
    func failuresAreOnlyTheCollectors(_ behaviour: String) async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, behaviour: behaviour, ["signals: logs"])
            let proxy = bed.shared.proxy
            #expect(try await bed.connect("pinned.test") == 502)
            try await bed.reload("signals: logs", "interval: 11s")
            let request = try await bed.collector.events.first("request")
            #expect(request["path"] == "/v1/logs", "\(request)")
            try await bed.shared.servesOthers()
            // It is retried after eight seconds at the earliest, or stays silent for ten.
            let failure = try await proxy.events.first("telemetry.failed")
            #expect(failure["signal"] == "logs" && failure["cause"]?.isEmpty == false, "\(failure)")
            let isLost = behaviour == "400" || behaviour.hasPrefix("200")
            #expect(failure["effect"]?.contains("lost") == isLost, "\(failure)")
            try await bed.shared.servesOthers()
            try bed.behave("200")
            #expect(try await bed.connect("reported.test") == 200)
            try await bed.reload("signals: logs", "interval: 12s")
            _ = try await bed.collector.events.first("log") { $0["a.host"] == "reported.test" }
            let early = bed.collector.events.all("log").contains { $0["a.host"] == "pinned.test" }
            // The collector itself has read what it then answered with something else.
            #expect(early == !isLost || behaviour.hasPrefix("200"), "\(bed.collector.events.all)")
        }
    }

    @Test func whatIsRejectedIsSaidOnce() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, behaviour: "reject 3 too old", ["interval: 10s", "signals: metrics"])
            let said = try await bed.shared.proxy.events.first("telemetry.rejected")
            #expect(said["cause"]?.contains("too old") == true && said["dropped"] == "3", "\(said)")
            _ = try await bed.collector.events.first("request", number: 2)
            try await eventually("six dropped points") {
                try await bed.metrics().contains("pinproxy_telemetry_dropped_total{signal=\"metrics\"} 6")
            }
            #expect(bed.shared.proxy.events.all("telemetry.rejected").count == 1)
        }
    }

    /// Events from just before the end arrive. A collector that is silent then delays the end only briefly.
    @Test(arguments: ["200", "silent"])
    func theEndIsTold(_ behaviour: String) async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, ["interval: 1h"])
            _ = try await bed.collector.events.first("metrics")
            try await eventually("the first answer") {
                try await bed.metrics().contains("pinproxy_telemetry_answer_timestamp_seconds{signal=\"metrics\"}")
            }
            try bed.behave(behaviour)
            #expect(try await bed.connect("pinned.test") == 502)
            bed.shared.proxy.process.send(signal: SIGTERM)
            #expect(try await bed.shared.proxy.process.ending() == .exited(0))
            guard behaviour == "200" else { return }
            _ = try await bed.collector.events.first("log") { $0["a.host"] == "pinned.test" }
            let last = try await bed.collector.events.first("metrics", number: 2)["points"] ?? ""
            #expect(last.contains("pinproxy_pin_checks{entry=pinned.test,result=missed} 1"), "\(last)")
            #expect(bed.collector.events.all("metrics").count == 2)
        }
    }

    @Test func withoutTheSectionNothingIsSent() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed)
            _ = try await bed.collector.events.first("metrics")
            try ProxyProcess.write(
                to: bed.bed, folder: "proxy", pins: bed.pins, trust: bed.bed.path("roots.pem"),
                sections: ["admin": ["listen: 127.0.0.1:0"]])
            #expect(try await bed.shared.proxy.reload().name == "config.reload")
            let before = bed.collector.events.all("request").count
            #expect(try await bed.connect("pinned.test") == 502)
            let status = try await TaskControl(bed: bed.bed, proxy: bed.shared.proxy).pinproxy("status")
            #expect(!status.output.contains("collector"), "\(status)")
            bed.shared.proxy.process.send(signal: SIGTERM)
            _ = try await bed.shared.proxy.process.ending()
            #expect(bed.collector.events.all("request").count == before)
        }
    }
}
