package import Logging
package import PinproxyConfiguration
package import PinproxySecurity
package import PinproxyTLS
import Synchronization

/// Counts matched and missed pins for all workers, in `pins.json`.
package final class PinLedger: Sendable {
    static let fileName = PinHistory.fileName

    package let history: KeptValue<PinHistory>
    private let logger: Logger
    private let sawEnough: @Sendable () -> Void
    private let noted = Mutex(Noted())

    private struct Noted {
        /// The history's policies by entry.
        var policies: [String: Known] = [:]
        /// Entries that have seen enough to be enforced.
        var ready: Set<String> = []
        var saidFull = false
    }

    private struct Known: Equatable {
        let digest: SHA256Digest
        let isReportOnly: Bool
    }

    /// - Parameter sawEnough: called on any thread, when the `enforce_after` of an entry begins to hold.
    package init(directory: String, logger: Logger, sawEnough: @escaping @Sendable () -> Void = {}) {
        self.sawEnough = sawEnough
        history = KeptValue(PinHistory(), in: StateFile(Self.fileName, in: directory), logger: logger)
        self.logger = logger
    }

    /// Any thread; once for each connection to an origin, resumed ones too.
    func count(_ verdict: Verdict, of entry: HostEntry, at time: UnixTime) {
        guard let outcome = outcome(verdict, entry.policy) else { return }
        guard note(entry, at: time) else { return }
        let isReady = history.change { history in
            history.count(outcome, for: entry.pattern, at: time)
            return entry.policy.rollout?.awaited.map { history.entries[entry.pattern]?.meets($0) == true } ?? false
        }
        if isReady, noted.withLock({ $0.ready.insert(entry.pattern).inserted }) { sawEnough() }
    }

    /// The entries that may be enforced now by their `enforce_after`, with their counts.
    package func ready(in snapshot: Snapshot) -> [(entry: HostEntry, record: PinHistory.EntryRecord)] {
        let names = noted.withLock { $0.ready }
        guard !names.isEmpty else { return [] }
        let history = history.value
        let ready = snapshot.hosts.values.compactMap { entry -> (entry: HostEntry, record: PinHistory.EntryRecord)? in
            guard let condition = entry.policy.rollout?.awaited, names.contains(entry.pattern),
                let record = history.entries[entry.pattern], record.meets(condition)
            else { return nil }
            return (entry, record)
        }
        // Other entries report again when their condition is met.
        noted.withLock { $0.ready.formIntersection(ready.map(\.entry.pattern)) }
        return ready
    }

    /// Forgets what was counted towards `enforce_after`.
    package func beginAnew(_ entries: [String]) {
        guard !entries.isEmpty else { return }
        history.change { history in for entry in entries { history.beginAnew(entry) } }
    }

    private func outcome(_ verdict: Verdict, _ policy: SecurityPolicy) -> PinHistory.Outcome? {
        let pins = policy.matchingPins(in: verdict)
        if !pins.isEmpty { return .matched(pins.map(\.description)) }
        return verdict.report != nil || verdict.refusal?.isPinFailure == true ? .missed : nil
    }

    /// Adds the entry to the history, once for each policy.
    private func note(_ entry: HostEntry, at time: UnixTime) -> Bool {
        let known = Known(digest: entry.policy.digest, isReportOnly: entry.policy.onlyReports(at: time))
        if noted.withLock({ $0.policies[entry.pattern] }) == known { return true }
        guard
            history.change({
                $0.note(
                    entry: entry.pattern, PinHistory.Configured(entry.policy), isReportOnly: known.isReportOnly,
                    at: time)
            })
        else {
            let isNews = noted.withLock { noted in
                defer { noted.saidFull = true }
                return !noted.saidFull
            }
            if isNews {
                logger.warning(
                    "state.full",
                    metadata: ["file": "\(Self.fileName)", "effect": "pins of further entries are not counted"])
            }
            return false
        }
        noted.withLock { $0.policies[entry.pattern] = known }
        return true
    }

    /// Compares the history with a new configuration.
    package func settle(_ snapshot: Snapshot, at time: UnixTime) {
        noted.withLock { $0 = Noted() }
        var configured: [String: HostEntry] = [:]
        for entry in snapshot.hosts.values { configured[entry.pattern] = entry }
        history.change { history in
            history.settle(at: time) { name in configured[name].map { PinHistory.Configured($0.policy) } }
        }
    }

    package func save() { history.save() }
}
