package import PinproxyTLS

/// How an entry comes to enforce its pins: on a date, after enough evidence, or on some machines first.
///
/// ```yaml
/// enforcement: report
/// enforce_from: 2026-12-15                  # or: enforce_after: {matches: 100, days: 14}
/// ```
/// ```yaml
/// stage: 10%                                # with enforcement: enforce
/// ```
///
/// `enforcement` says what holds until then, or once it is on all machines.
package enum PinRollout: Sendable, Hashable {
    /// Reported before that instant, and then enforced.
    case from(UnixTime)
    /// Reported until the condition has held once. `enforcedSince`: nil: it hasn't yet.
    case after(EnforcementCondition, enforcedSince: UnixTime?)
    /// Enforced on machines with a place below `percent`, and reported on the others.
    case stage(percent: Int, place: Int)

    package func enforcement(at time: UnixTime) -> Enforcement {
        let isEnforced =
            switch self {
            case .from(let date): time >= date
            case .after(_, let since): since != nil
            case .stage(let percent, let place): place < percent
            }
        return isEnforced ? .enforce : .report
    }

    /// When a mismatch that is reported now will be refused; nil: unknown.
    func end(at time: UnixTime) -> UnixTime? {
        if case .from(let date) = self, date > time { date } else { nil }
    }

    /// The condition that has yet to hold.
    package var awaited: EnforcementCondition? {
        if case .after(let condition, nil) = self { condition } else { nil }
    }

    /// The key in the pin file.
    package var key: String {
        switch self {
        case .from: "enforce_from"
        case .after: "enforce_after"
        case .stage: "stage"
        }
    }

    /// The value in the pin file.
    package var written: String {
        switch self {
        case .from(let date): "\(CalendarDate(date))"
        case .after(let condition, _): condition.written
        case .stage(let percent, _): "\(percent)%"
        }
    }

    /// For a digest. Rollouts that decide alike may differ in it.
    var words: [String] {
        switch self {
        case .from(let date): [key, "\(date)"]
        case .after(let condition, let since): [key, condition.written, since == nil ? "report" : "enforce"]
        case .stage(let percent, let place): [key, "\(percent)", place < percent ? "enforce" : "report"]
        }
    }

    /// Whether it enforces wherever and whenever the other one does, as far as what is written says.
    package func isAsStrict(as other: PinRollout) -> Bool {
        switch (self, other) {
        case (.from(let date), .from(let otherDate)): date <= otherDate
        case (.after(let condition, _), .after(let otherCondition, _)): condition.isMet(whenMet: otherCondition)
        case (.stage(let percent, _), .stage(let otherPercent, _)): percent >= otherPercent
        default: false
        }
    }
}

/// The evidence that an entry needs to enforce its pins (`enforce_after`).
package struct EnforcementCondition: Sendable, Hashable {
    /// Connections in a row that met a pin.
    package let matches: Int
    /// Days of these connections, from the first one (``PinHistory/EntryRecord/matchedFor``).
    package let days: Int

    package init(matches: Int, days: Int) {
        (self.matches, self.days) = (matches, days)
    }

    func isMet(whenMet other: EnforcementCondition) -> Bool { matches <= other.matches && days <= other.days }

    /// As a mapping of the pin file.
    var written: String { "{matches: \(matches), days: \(days)}" }
}

extension PinRollout {
    /// Why pins are reported or enforced, and until when, in human-readable form. Begins with `reported` or `enforced`.
    /// - Parameter record: the counts; nil: unknown.
    package func text(at time: UnixTime, counted record: PinHistory.EntryRecord? = nil) -> String {
        let state = enforcement(at: time) == .enforce ? "enforced" : "reported"
        switch self {
        case .from(let date): return "\(state) \(time >= date ? "since" : "until") \(CalendarDate(date)) (enforce_from)"
        case .after(let condition, let since?):
            return "\(state) since \(CalendarDate(since)) (enforce_after: \(condition.text))"
        case .after(let condition, nil):
            let progress = record.map { ": \($0.progress(towards: condition))" } ?? ""
            return "\(state) until \(condition.text) (enforce_after)\(progress)"
        case .stage(let percent, let place):
            return "\(state) here: stage \(percent)%, this machine has place \(place)"
        }
    }
}

extension EnforcementCondition {
    fileprivate var text: String {
        let matches = Count(matches, "match", plural: "matches")
        return days == 0 ? "\(matches) without a mismatch" : "\(matches) and \(Count(days, "day")) without a mismatch"
    }
}

extension PinHistory.EntryRecord {
    fileprivate func progress(towards condition: EnforcementCondition) -> String {
        let matches = "\(min(matchesSinceMiss, condition.matches)) of \(condition.matches) matches"
        let days = min((matchedFor ?? 0) / 86_400, Int64(condition.days))
        return condition.days == 0 ? matches : "\(matches), \(days) of \(Count(condition.days, "day"))"
    }
}
