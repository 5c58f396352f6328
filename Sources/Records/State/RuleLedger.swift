package import Logging
package import PinproxyConfiguration
import PinproxySecurity
package import PinproxySerialization
package import PinproxySession
package import PinproxyTLS
import Synchronization

/// Counts exchanges (``RuleCounts``, collected once a minute) and findings of rules for all workers, in `rules.json`.
package final class RuleLedger: Sendable {
    let history: KeptValue<RuleHistory>
    private let logger: Logger
    private let table = Mutex(Table())

    /// The rules of some requests, and their writers.
    private struct Counted: Sendable {
        let rules: ExchangeRules
        let names: [RuleHistory.Name]
        /// By key (`response.status`).
        let writers: [String: RuleHistory.Name]

        /// The writer of `enforcement: report`; nil: it isn't set.
        var reporter: RuleHistory.Name? {
            rules.response.enforcement == .report ? writers["response.\(ResponseRules.Key.enforcement.rawValue)"] : nil
        }
    }

    private struct Table {
        var present: [ObjectIdentifier: Counted] = [:]
        /// Rules of the previous configuration, for exchanges in flight.
        var past: [ObjectIdentifier: Counted] = [:]
    }

    package init(directory: String, logger: Logger) {
        history = KeptValue(RuleHistory(), in: StateFile(RuleHistory.fileName, in: directory), logger: logger)
        self.logger = logger
    }

    /// Counts a wrong response. Any thread.
    package func count(_ finding: ResponseFinding, _ error: ResponseSerializationError, at time: UnixTime) {
        let id = ObjectIdentifier(finding.rules.counts)
        guard let counted = table.withLock({ $0.present[id] ?? $0.past[id] }) else { return }
        if finding.rules.response.enforcement == .report {
            guard let name = counted.reporter else { return }
            // Restarts the count of right responses, which had this one.
            let (exchanges, _) = counted.rules.counts.take()
            history.change { history in
                for name in counted.names { history.applied(name, exchanges: exchanges, at: time) }
                history.reported(name, cause: "\(error)", at: time)
            }
        } else if let name = finding.rules.key(of: error).flatMap({ counted.writers[$0] }) {
            history.change { $0.refused(name, cause: "\(error)", at: time) }
        }
    }

    func collect(at time: UnixTime) {
        let counts = table.withLock { table in
            [table.present, table.past].flatMap(\.values).compactMap { counted in
                let (exchanges, responses) = counted.rules.counts.take()
                return exchanges == 0 && responses == 0 ? nil : (counted, exchanges, responses)
            }
        }
        guard !counts.isEmpty else { return }
        history.change { history in
            for (counted, exchanges, responses) in counts {
                for name in counted.names { history.applied(name, exchanges: exchanges, at: time) }
                if let reporter = counted.reporter { history.judged(reporter, responses: responses) }
            }
        }
    }

    package func settle(_ snapshot: Snapshot, at time: UnixTime) {
        collect(at: time)
        var present: [ObjectIdentifier: Counted] = [:]
        func note(_ layers: RuleLayers?, _ entry: String?) {
            for combination in layers?.combinations ?? [] {
                func name(_ source: RuleSource) -> RuleHistory.Name {
                    let rule = layers?.rule(source)
                    return RuleHistory.Name(entry: source.writer == .entry ? entry : nil, requests: rule?.requests)
                }
                let names = combination.layers.filter { !$0.request.places.isEmpty || !$0.response.places.isEmpty }
                    .map { name($0.source) }
                guard !names.isEmpty else { continue }
                let writers = combination.keys.map { ($0.name, name($0.source)) }
                present[ObjectIdentifier(combination.rules.counts)] = Counted(
                    rules: combination.rules, names: names, writers: Dictionary(writers) { first, _ in first })
            }
        }
        note(snapshot.defaultRules, nil)
        for entry in snapshot.hosts.values where entry.action == .intercept {
            note(entry.rules, entry.pattern)
        }
        let configured = Self.configured(present.values)
        table.withLock { table in
            // Rules that stay in force have no past.
            table.past = table.present.filter { present[$0.key] == nil }
            table.present = present
        }
        guard !configured.isEmpty || !history.value.records.isEmpty else { return }
        if !history.change({ $0.settle(configured, at: time) }) {
            logger.warning(
                "state.full", metadata: ["file": "\(RuleHistory.fileName)", "effect": "further rules are not counted"])
        }
    }

    /// All rules, with digests of the demands of report-only ones.
    private static func configured(_ all: some Sequence<Counted>) -> [RuleHistory.Name: String?] {
        var names: Set<RuleHistory.Name> = []
        var demands: [RuleHistory.Name: Set<String>] = [:]
        for counted in all {
            names.formUnion(counted.names)
            guard let reporter = counted.reporter, counted.rules.judge != nil else { continue }
            let asked = ResponseRules.Key.allCases.map { "\($0.rawValue): \(counted.rules.response.text(of: $0))" }
            demands[reporter, default: []].insert(asked.joined(separator: "\n"))
        }
        return Dictionary(
            uniqueKeysWithValues: names.map { name in
                (name, demands[name].map { SHA256Digest.of(Array($0.sorted().joined(separator: "\n\n").utf8)).base64 })
            })
    }

    package func save(at time: UnixTime) {
        collect(at: time)
        history.save()
    }
}
