import Foundation
import Testing

/// The dashboard, the alerts and the page of metrics name what the proxy exports.
@Suite(.timeLimit(.minutes(2)))
struct MonitoringTests {
    /// The metrics that the sources export, by their Prometheus names.
    private func exported() throws -> Set<String> {
        let folder = "Sources/Daemon/Metrics/"
        let texts = try FileManager.default.contentsOfDirectory(atPath: "\(Documentation.repository)/\(folder)")
            .map { try Documentation.text(folder + $0) }
        let families = texts.flatMap { $0.matches(of: /family\(\s*"(\w+)", (?:\.(counter|gauge)|")/) }
        return Set(families.map { $0.output.2 == "counter" ? "\($0.output.1)_total" : String($0.output.1) })
    }

    /// The names of the table of docs/metrics.md. In a row, `…_b` after `x_a` is `x_b`.
    private func documented(among names: Set<String>) throws -> (exact: Set<String>, found: Set<String>) {
        var exact: Set<String> = []
        var found: Set<String> = []
        for line in try Documentation.text("docs/metrics.md").split(separator: "\n") where line.hasPrefix("| `p") {
            let cell = line.split(separator: "|")[0].matches(of: /`([a-z0-9_…]+)`/).map { String($0.output.1) }
            guard let first = cell.first else { continue }
            if first.hasSuffix("…") {
                found.formUnion(names.filter { $0.hasPrefix(first.dropLast()) })
                continue
            }
            for name in cell where !name.hasPrefix("…") { exact.insert(name) }
            for short in cell where short.hasPrefix("…") {
                found.formUnion(
                    names.filter { name in
                        name.hasSuffix(short.dropFirst()) && first.hasPrefix(name.dropLast(short.count - 1))
                    })
            }
        }
        return (exact, found.union(exact))
    }

    private func metrics(in expression: String) -> Set<String> {
        Set(
            expression.matches(of: /\b(?:pinproxy|process)_\w+/).map {
                String($0.output).replacing(/_bucket$/, with: "")
            })
    }

    private func dashboard() throws -> [(title: String, expression: String)] {
        let text = Data(try Documentation.text("docs/monitoring/grafana.json").utf8)
        let dashboard = try JSONSerialization.jsonObject(with: text) as? [String: Any]
        let panels = dashboard?["panels"] as? [[String: Any]] ?? []
        return panels.flatMap { panel in
            let targets = panel["targets"] as? [[String: Any]] ?? []
            return targets.map { (panel["title"] as? String ?? "", $0["expr"] as? String ?? "") }
        }
    }

    @Test func everyMetricIsListed() throws {
        let names = try exported()
        let listed = try documented(among: names)
        #expect(names.contains("pinproxy_exchanges_total") && names.contains("pinproxy_tasks"), "\(names)")
        #expect(names.subtracting(listed.found).sorted() == [], "missing from docs/metrics.md")
        #expect(listed.exact.subtracting(names).sorted() == [], "never exported")
    }

    @Test func dashboardAndAlertsNameWhatThereIs() throws {
        let names = try exported()
        let panels = try dashboard()
        #expect(panels.count > 20)
        for panel in panels {
            #expect(metrics(in: panel.expression).subtracting(names) == [], "\(panel.title)")
        }
        let alerts = try Documentation.text("docs/monitoring/alerts.yml")
        let rules = alerts.split(separator: "\n").filter { !$0.contains("description:") && !$0.contains("summary:") }
        let named = metrics(in: rules.joined(separator: "\n"))
        #expect(named.count > 10 && named.subtracting(names) == [], "\(named)")
    }

    @Test func everyAlertIsTried() throws {
        let alerts = try Documentation.text("docs/monitoring/alerts.yml")
            .matches(of: /- alert: (\w+)/).map { String($0.output.1) }
        let cases = try Documentation.text("docs/monitoring/alerts_test.yml")
            .matches(of: /alertname: (\w+)\n +exp_alerts:\n +-\s/).map { String($0.output.1) }
        #expect(Set(alerts).subtracting(cases) == [] && Set(alerts).count == alerts.count)
    }

    /// Prometheus understands every query of the dashboard.
    @Test func prometheusUnderstandsTheDashboard() async throws {
        let expressions = try dashboard().map { $0.expression.replacing("$__rate_interval", with: "5m") }
        let rules = expressions.enumerated().map { ["record": "panel:\($0)", "expr": $1] }
        try await withTestBed { bed in
            // YAML has no escape for a slash.
            let groups = try JSONSerialization.data(
                withJSONObject: ["groups": [["name": "dashboard", "rules": rules]]], options: .withoutEscapingSlashes)
            try bed.file("rules.yml", String(decoding: groups, as: UTF8.self))
            let check = try await bed.run(["promtool", "check", "rules", "rules.yml"])
            #expect(check.succeeded && check.output.contains("\(rules.count) rules found"), "\(check)")
        }
    }
}
