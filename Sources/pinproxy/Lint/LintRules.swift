internal import PinproxyConfiguration
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxySession
internal import PinproxyTLS

/// Findings from the running proxy's counts of request and response rules (``RuleHistory``).
struct LintRules {
    let snapshot: Snapshot
    let history: RuleHistory
    let now: UnixTime

    /// How long a rule must have been counted before its use is reported: as long as pins.
    static let timeToApply = LintHistory.promotionTime

    func findings() -> [LintFinding] {
        let entries = snapshot.hosts.values.lazy.filter { $0.action == .intercept }
        let defaults = snapshot.defaultRules ?? entries.compactMap(\.rules).first
        return (defaults.map { findings($0.defaults, entry: nil) } ?? [])
            + entries.flatMap { entry in entry.rules.map { findings($0.entry, entry: entry.pattern) } ?? [] }
    }

    private func findings(_ block: RuleBlock, entry: String?) -> [LintFinding] {
        let own = Rule(
            name: RuleHistory.Name(entry: entry, requests: nil), layer: block.own, place: block.own.firstPlace,
            title: entry ?? "defaults")
        let others = block.rules.map { rule in
            Rule(
                name: RuleHistory.Name(entry: entry, requests: rule.requests), layer: rule.layer, place: rule.place,
                title: "\(entry ?? "defaults"), \(rule.layer.source) (\(rule.requests))")
        }
        return ([own] + others).flatMap(findings)
    }

    private struct Rule {
        let name: RuleHistory.Name
        let layer: RuleLayer
        let place: Place?
        let title: String
    }

    private func findings(_ rule: Rule) -> [LintFinding] {
        guard let place = rule.place, let record = history.records[rule.name], record.removed == nil else { return [] }
        func finding(
            _ kind: LintFinding.Rule, _ severity: LintFinding.Severity, _ message: String, fix: String
        ) -> LintFinding {
            LintFinding(kind, severity, at: place, entry: rule.name.entry, "\(rule.title): \(message)", fix: fix)
        }
        var found: [LintFinding] = []
        if record.applied == 0, now - record.since >= Self.timeToApply {
            found.append(
                finding(
                    .unusedRule, .note, "the rules were applied to no request since \(CalendarDate(record.since))",
                    fix:
                        "compare them with an intended request (pinproxy explain HOST --path PATH --method "
                        + "METHOD), or remove them"))
        }
        let refusals = record.refusals.lately(at: now)
        if refusals > 0 {
            found.append(
                finding(
                    .refusedResponses, .warning,
                    "\(Count(refusals, "response")) \(refusals == 1 ? "was" : "were") refused in the last 7 days"
                        + last(record.refusals),
                    fix: "if they are right as they are, change the rule (serializer.mismatch in the log names each)"))
        }
        guard rule.layer.isReportOnly else { return found }
        let reports = record.reports.lately(at: now)
        if reports > 0 {
            found.append(
                finding(
                    .refusedResponses, .warning,
                    "\(Count(reports, "response")) of the last 7 days would be refused with enforcement: enforce"
                        + last(record.reports),
                    fix: "see which (serializer.report in the log), and change the rule if they are right as they are"))
        } else if let began = record.reportOnlySince.map({ max($0, record.reports.last ?? $0) }),
            record.rightSinceReport >= LintHistory.promotionMatches, now - began >= LintHistory.promotionTime
        {
            found.append(
                finding(
                    .canBeEnforced, .note,
                    "\(Count(record.rightSinceReport, "response")) were judged and none was reported since "
                        + "\(CalendarDate(began)): it is ready to enforce",
                    fix: "write enforcement: enforce, then: pinproxy reload"))
        }
        return found
    }

    private func last(_ findings: RuleHistory.Findings) -> String {
        guard let time = findings.last, let cause = findings.cause else { return "" }
        return ", the last one \(CalendarDate(time)): \(cause)"
    }
}

extension RuleLayer {
    /// The first of its keys about requests and responses.
    fileprivate var firstPlace: Place? {
        (Array(request.places.values) + Array(response.places.values)).min {
            ($0.line ?? 0, $0.column ?? 0) < ($1.line ?? 0, $1.column ?? 0)
        }
    }

    /// Whether its own `enforcement` is report.
    fileprivate var isReportOnly: Bool {
        response.places[.enforcement] != nil && response.values.enforcement == .report
    }
}

/// Findings from the running proxy's counts of the pins (``PinHistory``).
struct LintHistory {
    let snapshot: Snapshot
    let history: PinHistory
    let now: UnixTime

    /// The evidence that a report-only entry is ready to enforce: consecutive connections that matched a pin, over
    /// so long a time. A week has seen each day of it, and most servers of a pool.
    static let promotionMatches = 100
    static let promotionTime: Int64 = 7 * 86_400
    /// How long an entry may only report: a rollout has an end.
    static let rolloutTime: Int64 = 30 * 86_400

    func findings() -> [LintFinding] {
        snapshot.hosts.values.lazy.filter { $0.policy.mode != .none }.flatMap { entry in
            let record = history.entries[entry.pattern]
            let isReportOnly = entry.policy.onlyReports(at: now)
            return (isReportOnly ? [reportOnly(entry, record)] : [dated(entry)].compactMap(\.self))
                + (record.map { deadPins(entry, $0) + (isReportOnly ? promotion(entry, $0) : []) } ?? [])
        }
    }

    private func deadPins(_ entry: HostEntry, _ record: PinHistory.EntryRecord) -> [LintFinding] {
        guard record.isAlive(at: now) else { return [] }
        return entry.policy.pins.pins.compactMap { pin in
            guard let counted = record.pins[pin.description], counted.isSilent(at: now) else { return nil }
            let name = pin.origin == pin.description ? "\(pin)" : "\(pin) (\(pin.origin))"
            if let last = counted.last {
                return LintFinding(
                    .deadPin, of: entry,
                    "\(name) last matched \(CalendarDate(last)), after "
                        + "\(Count(counted.matches, "match", plural: "matches")); since then only others "
                        + "have",
                    fix: "remove it if the server has changed its key for good: until then, anyone with the old key "
                        + "is accepted")
            }
            return LintFinding(
                .deadPin, .note, of: entry, "\(name) has matched nothing since \(CalendarDate(counted.since))",
                fix: "keep it if it is a backup whose private key is still available; else remove it")
        }
    }

    /// A date that has passed says nothing more.
    private func dated(_ entry: HostEntry) -> LintFinding? {
        guard case .from? = entry.policy.rollout else { return nil }
        return LintFinding(
            .canBeEnforced, .note, of: entry, "\(rollout(of: entry, nil)): the date is no longer needed",
            fix: "write enforcement: enforce, and remove enforce_from")
    }

    private func rollout(of entry: HostEntry, _ record: PinHistory.EntryRecord?) -> String {
        "the pins are \(entry.policy.rollout?.text(at: now, counted: record) ?? entry.policy.enforcement.rawValue)"
    }

    private func reportOnly(_ entry: HostEntry, _ record: PinHistory.EntryRecord?) -> LintFinding {
        if entry.policy.rollout != nil {
            return LintFinding(
                .reportOnly, .note, of: entry, rollout(of: entry, record ?? PinHistory.EntryRecord(since: now)),
                fix: "wait: until then a pin that doesn't match is logged and not refused")
        }
        let fix =
            """
            write enforcement: enforce once all that is reported is understood; lint says when there is nothing left \
            to report
            """
        guard let record, record.removed == nil, let since = record.reportOnlySince else {
            return LintFinding(
                .reportOnly, .note, of: entry,
                """
                enforcement is report, so a pin that doesn't match is logged and not refused; no connection has been \
                counted yet
                """,
                fix: fix)
        }
        let isOverdue = now - since >= Self.rolloutTime
        let overdue = isOverdue ? ", for more than \(Self.rolloutTime / 86_400) days" : ""
        return LintFinding(
            .reportOnly, isOverdue ? .warning : .note, of: entry,
            """
            enforcement is report since \(CalendarDate(since))\(overdue): a pin that doesn't match is logged and not \
            refused
            """,
            fix: fix)
    }

    private func promotion(_ entry: HostEntry, _ record: PinHistory.EntryRecord) -> [LintFinding] {
        let began = record.lastMiss ?? record.since
        if entry.policy.rollout == nil, record.matchesSinceMiss >= Self.promotionMatches,
            now - began >= Self.promotionTime
        {
            return [
                LintFinding(
                    .canBeEnforced, .note, of: entry,
                    "\(Count(record.matchesSinceMiss, "connection")) met a pin and none missed since "
                        + "\(CalendarDate(began)): it is ready to enforce",
                    fix: "write enforcement: enforce, then: pinproxy reload")
            ]
        }
        let misses = record.missesSinceChange
        guard misses > 0, let last = record.lastMiss, !record.lacks(anyOf: entry.policy.pins.pins.map(\.description))
        else { return [] }
        return [
            LintFinding(
                .misses, of: entry,
                "\(Count(misses, "connection")) met no pin, the last one \(CalendarDate(last)); with "
                    + "enforcement: enforce such a connection is refused",
                fix: "see which key it is (pinproxy explain HOST, pin.report in the log), and add its pin if it is "
                    + "right")
        ]
    }
}
