import Foundation
import PinproxyTestAuthority
import Testing

/// Reports of pin mismatches, to a collector.
@Suite(.timeLimit(.minutes(5)))
struct PinReportTests {
    /// One origin with several names, one of them unpinned, and a proxy that reports to a collector.
    private struct Bed {
        let bed: TestBed
        let roots: TestRoots
        let leaf: HeldCertificate
        let collector: PythonPeer
        let originPort: UInt16
        let proxy: ProxyProcess

        static let names = ["enforced.test", "reported.test", "a.wild.test", "free.test", "collector.test"]

        /// - Parameter pins: the entries, given the collector's port.
        init(
            _ bed: TestBed, collector arguments: [String] = [], secure: Bool = false,
            pins: (UInt16) -> String
        ) async throws {
            self.bed = bed
            roots = try TestRoots()
            leaf = try roots.intermediate.issue(TestRoots.template(Self.names))
            let certificate = try bed.file("collector.pem", ServedChain(leaf).pem)
            let key = try bed.file("collector.key", ServedChain(leaf).keyPEM)
            collector = try await PythonPeer(
                in: bed, script: "collector.py",
                arguments + (secure ? ["--certificate", certificate, "--key", key] : []))
            originPort = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf)).port
            proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n" + pins(collector.port), trust: roots.write(to: bed),
                hosts: Self.names.reduce(into: [:]) { $0[$1] = "127.0.0.1" })
        }

        func get(_ host: String, port: UInt16? = nil) async throws -> Run {
            try await bed.curl(via: proxy, ["https://\(host):\(port ?? originPort)/echo"])
        }

        func report(about host: String) async throws -> (event: LogEvent, body: [String: Any]) {
            let event = try await collector.events.first("report") { $0["body"]?.contains("\"\(host)\"") == true }
            let body = try JSONSerialization.jsonObject(with: Data((event["body"] ?? "").utf8))
            return (event, try #require(body as? [String: Any]))
        }
    }

    private static func entry(_ match: String, _ uri: String, _ more: String...) -> String {
        """
          - match: "\(match)"
            pinning: public-key
            pins: [\(String.wrongPin)]
            report_uri: \(uri)

        """ + more.map { "    \($0)\n" }.joined()
    }

    /// Dropped reports are logged once when the limit is reached, and counted at the end.
    @Test func whatIsDroppedIsCounted() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let names = (1...44).map { "h\($0).many.test" }
            let leaf = try roots.intermediate.issue(TestRoots.template(["*.many.test"]))
            let collector = try await PythonPeer(in: bed, script: "collector.py", [])
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n" + Self.entry("*.many.test", "http://collector.test:\(collector.port)/"),
                trust: roots.write(to: bed),
                hosts: (names + ["collector.test"]).reduce(into: [:]) { $0[$1] = "127.0.0.1" })
            // Together, so that they fall into one minute however busy the machine is.
            try await withThrowingTaskGroup { group in
                for name in names {
                    group.addTask { try await proxy.connect(to: "\(name):\(origin.port)").status }
                }
                for try await status in group { #expect(status == 502) }
            }
            #expect(try await proxy.events.first("pin.report.dropped")["dropped"] == nil)
            proxy.process.send(signal: SIGTERM)
            _ = try await proxy.process.ending()
            let said = proxy.events.all("pin.report.dropped")
            #expect(said.map { $0["dropped"] } == [nil, "14"], "\(said)")
        }
    }

    @Test func aMismatchIsReportedInTheShapeOfTheRFC() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, secure: true) { port in
                let uri = "https://collector.test:\(port)/pins?from=here"
                return Self.entry("enforced.test", uri, "expires: 2099-06-30")
                    + Self.entry("reported.test", uri, "enforcement: report") + Self.entry("*.wild.test", uri)
            }
            #expect(try await !bed.get("enforced.test").succeeded)
            #expect(try await bed.get("reported.test").succeeded)
            #expect(try await !bed.get("a.wild.test").succeeded)

            let (event, enforced) = try await bed.report(about: "enforced.test")
            #expect(event["target"] == "/pins?from=here")
            #expect(event["host"] == "collector.test:\(bed.collector.port)")
            #expect(event["type"] == "application/json")
            #expect(enforced["hostname"] as? String == "enforced.test")
            #expect(enforced["noted-hostname"] as? String == "enforced.test")
            #expect(enforced["port"] as? Int == Int(bed.originPort))
            #expect(enforced["include-subdomains"] as? Bool == false)
            #expect(enforced["effective-expiration-date"] as? String == "2099-06-30T00:00:00Z")
            #expect(enforced["known-pins"] as? [String] == ["pin-sha256=\"\(String.wrongPin.dropFirst(7))\""])
            let date = try #require(ISO8601DateFormatter().date(from: enforced["date-time"] as? String ?? ""))
            #expect(abs(date.timeIntervalSinceNow) < 60)
            func pem(_ key: String) -> String { (enforced[key] as? [String] ?? []).joined() }
            #expect(pem("served-certificate-chain") == ServedChain(bed.leaf).pem)
            #expect(pem("validated-certificate-chain") == ServedChain(bed.leaf).pem + bed.roots.root.pem)

            let reported = try await bed.report(about: "reported.test").body
            #expect(reported["effective-expiration-date"] == nil)
            let wild = try await bed.report(about: "a.wild.test").body
            #expect(wild["noted-hostname"] as? String == "wild.test")
            #expect(wild["include-subdomains"] as? Bool == true)
            _ = try await bed.proxy.events.first("pin.report.sent") { $0["host"] == "a.wild.test" }
        }
    }

    @Test func theSameReportIsSentOnce() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed) { port in
                Self.entry("enforced.test", "http://collector.test:\(port)/")
                    + Self.entry("a.wild.test", "http://collector.test:\(port)/")
            }
            for _ in 1...5 { #expect(try await !bed.get("enforced.test").succeeded) }
            // Reports are sent in order, so this is the last one.
            #expect(try await !bed.get("a.wild.test").succeeded)
            _ = try await bed.report(about: "a.wild.test")
            #expect(bed.collector.events.all("report").count == 2)
            _ = try await bed.proxy.events.first("pin.mismatch") { $0["host"] == "a.wild.test" }
            #expect(bed.proxy.events.all("pin.mismatch").count == 6)
        }
    }

    /// The collector is the host with the wrong pins. Its own report is not subject to them.
    @Test func aHostIsReportedToItself() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, secure: true) { port in
                Self.entry("collector.test", "https://collector.test:\(port)/")
            }
            #expect(try await !bed.get("collector.test", port: bed.collector.port).succeeded)
            _ = try await bed.report(about: "collector.test")
            _ = try await bed.proxy.events.first("pin.report.sent")
        }
    }

    /// The trust anchors still apply: no other server gets the reports.
    @Test func aCollectorThatIsNotTrustedGetsNothing() async throws {
        try await withTestBed { bed in
            let stranger = try TestRoots("Stranger").leaf("collector.test")
            let bed = try await Bed(
                bed,
                collector: [
                    "--certificate", bed.file("stranger.pem", ServedChain(stranger).pem),
                    "--key", bed.file("stranger.key", ServedChain(stranger).keyPEM),
                ]
            ) { port in Self.entry("enforced.test", "https://collector.test:\(port)/") }
            #expect(try await !bed.get("enforced.test").succeeded)
            let event = try await bed.proxy.events.first("pin.report.failed")
            #expect(event["host"] == "enforced.test")
            #expect(event["cause"]?.contains("collector.test") == true, "\(event)")
            #expect(bed.collector.events.all("report").isEmpty)
        }
    }

    @Test func aCollectorThatIsDownDisturbsNobody() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed) { _ in
                // Nothing listens on port 9 of the loopback, and no test can get it.
                Self.entry("reported.test", "http://127.0.0.1:9/", "enforcement: report")
            }
            #expect(try await bed.get("reported.test").succeeded)
            let event = try await bed.proxy.events.first("pin.report.failed")
            #expect(event["report_uri"] == "http://127.0.0.1:9/")
            #expect(event["cause"]?.contains("refused") == true, "\(event)")
            #expect(try await bed.get("reported.test").succeeded)
        }
    }

    @Test func aCollectorThatNeverAnswersDisturbsNeitherExchangesNorTheStop() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, collector: ["--silent"]) { port in
                Self.entry("reported.test", "http://collector.test:\(port)/", "enforcement: report")
                    + Self.entry("a.wild.test", "http://collector.test:\(port)/", "enforcement: report")
            }
            #expect(try await bed.get("reported.test").succeeded)
            _ = try await bed.report(about: "reported.test")
            // While that one waits for its answer:
            #expect(try await bed.get("free.test").succeeded)
            #expect(try await bed.get("a.wild.test").succeeded)
            _ = try await bed.report(about: "a.wild.test")
            bed.proxy.process.send(signal: SIGTERM)
            #expect(try await bed.proxy.process.ending() == .exited(0))
            #expect(bed.proxy.events.all("pin.report.sent").isEmpty)
        }
    }

    @Test func anAnswerThatRefusesIsTriedTwiceAndLogged() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, collector: ["--answer", "503"]) { port in
                Self.entry("enforced.test", "http://collector.test:\(port)/")
            }
            #expect(try await !bed.get("enforced.test").succeeded)
            let event = try await bed.proxy.events.first("pin.report.failed")
            #expect(event["cause"] == "the collector answered 503")
            try await eventually("the second report") { bed.collector.events.all("report").count == 2 }
        }
    }

    @Test func blockedAddressesAreNotReportedTo() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed) { _ in
                Self.entry("enforced.test", "http://169.254.169.254/latest/", "enforcement: report")
            }
            #expect(try await bed.get("enforced.test").succeeded)
            let event = try await bed.proxy.events.first("pin.report.failed")
            #expect(event["cause"]?.contains("block_addresses") == true, "\(event)")
        }
    }
}
