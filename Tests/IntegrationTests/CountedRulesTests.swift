import Foundation
import PinproxyTestAuthority
import Testing

/// The counts of request and response rules that the daemon keeps.
@Suite(.timeLimit(.minutes(5)))
struct CountedRulesTests {
    private struct History: Decodable {
        struct Findings: Decodable {
            let total: Int
            let cause: String?
        }
        struct Rule: Decodable {
            let entry: String?
            let requests: String?
            let applied: Int
            let last: Int64?
            let refusals: Findings
            let reports: Findings
            let rightSinceReport: Int
        }
        let rules: [Rule]

        func rule(_ entry: String?, _ requests: String?) -> Rule? {
            rules.first { $0.entry == entry && $0.requests == requests }
        }
    }

    private func history(_ bed: TestBed) throws -> History {
        try JSONDecoder().decode(History.self, from: Data(bed.contents("proxy/state/pinproxy/rules.json").utf8))
    }

    private static let pins = """
        defaults:
          request: {headers: {X-Fleet: a}}
        hosts:
          - match: rules.test
            response: {status: [200-299]}
            rules:
              - {path: /echo/xml, response: {serializer: xml}}
              - {path: /echo/never, request: {headers: {X-A: b}}}
              - {path: /echo/session, session: {service_type: voice}}
              - {path: /**, response: {status: [204], enforcement: report}}

        """

    @Test func countsExchangesAndFindingsOfEachRule() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("rules.test", "other.test")
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            let trust = try roots.write(to: bed)
            let hosts = ["rules.test": "127.0.0.1", "other.test": "127.0.0.1"]
            var proxy = try await ProxyProcess(in: bed, pins: Self.pins, trust: trust, hosts: hosts)
            func get(_ host: String, _ paths: String...) async throws {
                _ = try await bed.curl(via: proxy, paths.map { "https://\(host):\(origin.port)\($0)" })
            }
            try await get("rules.test", "/status/204", "/echo/1", "/echo/2", "/status/204", "/echo/session")
            try await get("rules.test", "/echo/xml")
            try await get("other.test", "/echo/1")
            try await proxy.reload()
            var history = try history(bed)
            #expect(history.rules.count == 5, "\(history)")
            #expect(history.rule("rules.test", "/echo/session") == nil)
            let defaults = try #require(history.rule(nil, nil))
            let own = try #require(history.rule("rules.test", nil))
            // curl may retry after a refusal.
            #expect(own.applied >= 6)
            #expect(defaults.applied == own.applied + 1)
            #expect(own.refusals.total == 0)
            let report = try #require(history.rule("rules.test", "/**"))
            #expect(report.applied == 4)
            #expect(abs((report.last ?? 0) - TestRoots.now) < 60)
            #expect(report.reports.total == 2)
            #expect(report.reports.cause == "Unacceptable status 200")
            #expect(report.refusals.total == 0)
            // One response since the last report.
            #expect(report.rightSinceReport == 1)
            let xml = try #require(history.rule("rules.test", "/echo/xml"))
            #expect(xml.refusals.total == xml.applied)
            #expect(xml.refusals.cause == "Unacceptable content type application/json")
            #expect(xml.rightSinceReport == 0)
            let never = try #require(history.rule("rules.test", "/echo/never"))
            #expect(never.applied == 0)
            #expect(never.last == nil)

            // A moved rule keeps its counts, even over a restart.
            proxy.process.send(signal: SIGTERM)
            _ = try await proxy.process.ending()
            let xmlRule = "      - {path: /echo/xml, response: {serializer: xml}}\n"
            let moved = Self.pins.replacingOccurrences(of: xmlRule, with: "").replacingOccurrences(
                of: "      - {path: /echo/session", with: xmlRule + "      - {path: /echo/session")
            try #require(moved != Self.pins)
            proxy = try await ProxyProcess(in: bed, pins: moved, trust: trust, hosts: hosts)
            try await get("rules.test", "/echo/xml")
            try await get("rules.test", "/status/204")
            proxy.process.send(signal: SIGTERM)
            _ = try await proxy.process.ending()
            history = try self.history(bed)
            #expect(history.rules.count == 5)
            let again = try #require(history.rule("rules.test", "/echo/xml"))
            #expect(again.applied > xml.applied)
            #expect(again.refusals.total == again.applied)
            #expect(history.rule("rules.test", "/**")?.rightSinceReport == 2)

            let lint = try await bed.run(
                [ProxyProcess.executable, "lint", "--offline", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(lint.output.contains("rule 2 of the entry (/echo/xml): "), "\(lint)")
            #expect(
                lint.output.contains("2 responses of the last 7 days would be refused with enforcement: enforce"),
                "\(lint)")
        }
    }
}
