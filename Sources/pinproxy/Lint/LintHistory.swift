internal import Configuration
internal import Security
internal import TLS

/// What the running proxy's counts say of the pins (``PinHistory``).
struct LintHistory {
    let snapshot: Snapshot
    let history: PinHistory
    let now: UnixTime

    /// How long a pin must not have matched while others did, to be called dead.
    static let deadAfter: Int64 = 30 * 86_400
    /// What a report-only entry needs to be enforced: so many connections in a row that met a pin, over
    /// so long a time. A week has seen each day of it, and most servers of a pool.
    static let promotionMatches = 100
    static let promotionTime: Int64 = 7 * 86_400

    func findings() -> [LintFinding] {
        snapshot.hosts.values.lazy.filter { $0.policy.mode != .none }.flatMap { entry in
            guard let record = history.entries[entry.pattern] else { return [LintFinding]() }
            return deadPins(entry, record) + (entry.policy.enforcement == .report ? promotion(entry, record) : [])
        }
    }

    private func deadPins(_ entry: HostEntry, _ record: PinHistory.EntryRecord) -> [LintFinding] {
        let isAlive = record.pins.values.contains { pin in
            pin.removed == nil && pin.last.map { now - $0 < Self.deadAfter } == true
        }
        guard isAlive else { return [] }
        return entry.policy.pins.pins.compactMap { pin in
            guard let counted = record.pins[pin.description],
                now - (counted.last ?? counted.since) >= Self.deadAfter
            else { return nil }
            let name = pin.origin == pin.description ? "\(pin)" : "\(pin) (\(pin.origin))"
            if let last = counted.last {
                return LintFinding(
                    .deadPin, of: entry,
                    "\(name) last matched \(CalendarDate(last)), after \(Count(counted.matches, "match", plural: "matches")); since then only others "
                        + "have",
                    fix: "remove it if the server has changed its key for good: until then, whoever holds the old key "
                        + "is accepted")
            }
            return LintFinding(
                .deadPin, .note, of: entry, "\(name) has matched nothing since \(CalendarDate(counted.since))",
                fix: "keep it if it is a backup whose private key is still available; else remove it")
        }
    }

    private func promotion(_ entry: HostEntry, _ record: PinHistory.EntryRecord) -> [LintFinding] {
        let began = record.lastMiss ?? record.since
        if record.matchesSinceMiss >= Self.promotionMatches, now - began >= Self.promotionTime {
            return [
                LintFinding(
                    .canBeEnforced, .note, of: entry,
                    "\(Count(record.matchesSinceMiss, "connection")) met a pin and none missed since "
                        + "\(CalendarDate(began)): it is ready to enforce",
                    fix: "write enforcement: enforce, then: pinproxy reload")
            ]
        }
        guard record.misses > 0, let last = record.lastMiss else { return [] }
        return [
            LintFinding(
                .misses, of: entry,
                "\(Count(record.misses, "connection")) met no pin, the last one \(CalendarDate(last)); with "
                    + "enforcement: enforce such a connection is refused",
                fix: "see which key it is (pinproxy explain HOST, pin.report in the log), and add its pin if it is "
                    + "right")
        ]
    }
}
