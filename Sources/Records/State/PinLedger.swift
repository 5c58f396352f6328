package import Configuration
package import Logging
package import Security
import Synchronization
package import TLS

/// Counts matched and missed pins for all workers, in `pins.json`.
package final class PinLedger: Sendable {
    static let fileName = PinHistory.fileName

    package let history: KeptValue<PinHistory>
    private let logger: Logger
    private let noted = Mutex(Noted())

    private struct Noted {
        /// Policies with pins in the history, by entry.
        var policies: [String: SHA256Digest] = [:]
        var saidFull = false
    }

    package init(directory: String, logger: Logger) {
        history = KeptValue(PinHistory(), in: StateFile(Self.fileName, in: directory), logger: logger)
        self.logger = logger
    }

    /// Any thread; once for each connection to an origin, resumed ones too.
    func count(_ verdict: Verdict, of entry: HostEntry, at time: UnixTime) {
        guard let outcome = outcome(verdict, entry.policy) else { return }
        guard note(entry, at: time) else { return }
        history.change { $0.count(outcome, for: entry.pattern, at: time) }
    }

    private func outcome(_ verdict: Verdict, _ policy: SecurityPolicy) -> PinHistory.Outcome? {
        let pins = policy.matchingPins(in: verdict)
        if !pins.isEmpty { return .matched(pins.map(\.description)) }
        return verdict.report != nil || verdict.refusal?.isPinFailure == true ? .missed : nil
    }

    /// Adds the entry to the history, once for each policy.
    private func note(_ entry: HostEntry, at time: UnixTime) -> Bool {
        if noted.withLock({ $0.policies[entry.pattern] }) == entry.policy.digest { return true }
        let pins = entry.policy.pins.pins.map(\.description)
        guard
            history.change({
                $0.note(entry: entry.pattern, pins: pins, isReportOnly: entry.policy.enforcement == .report, at: time)
            })
        else {
            let isNews = noted.withLock { noted in
                defer { noted.saidFull = true }
                return !noted.saidFull
            }
            if isNews {
                logger.warning(
                    "state.full",
                    metadata: ["file": "\(Self.fileName)", "effect": "the pins of more entries are not counted"])
            }
            return false
        }
        noted.withLock { $0.policies[entry.pattern] = entry.policy.digest }
        return true
    }

    /// Compares the history with a new configuration.
    package func settle(_ snapshot: Snapshot, at time: UnixTime) {
        noted.withLock { $0 = Noted() }
        var configured: [String: HostEntry] = [:]
        for entry in snapshot.hosts.values { configured[entry.pattern] = entry }
        history.change { history in
            history.settle(at: time) { name in
                configured[name].map { Set($0.policy.pins.pins.map(\.description)) }
            }
        }
    }

    package func save() { history.save() }
}
