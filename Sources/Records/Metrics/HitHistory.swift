import PinproxyEventLoop
import PinproxySession

/// Counts of the last 60 minutes: exchanges by entry and in all, and pin failures. On the main loop.
package struct HitHistory {
    static let minutes = 60

    private struct Series {
        private var last: UInt64 = 0
        /// The oldest first.
        private(set) var counts: [UInt64] = []

        mutating func note(_ total: UInt64, minute: Int) {
            counts += Array(repeating: 0, count: max(0, min(minute, HitHistory.minutes) - counts.count - 1))
            counts.append(total &- last)
            if counts.count > HitHistory.minutes { counts.removeFirst(counts.count - HitHistory.minutes) }
            last = total
        }

        /// The current minute and the 59 before it.
        /// - Parameter total: the present count.
        func lastHour(_ total: UInt64) -> UInt64 {
            counts.suffix(HitHistory.minutes - 1).reduce(total &- last) { $0 &+ $1 }
        }
    }

    private struct PinFailures {
        var missed = Series()
        var reported = Series()
    }

    private var entries: [Series] = []
    /// By place, for entries with failures.
    private var pinFailures: [Int: PinFailures] = [:]
    private var refusals = Series()
    private var exchanges = Series()
    private var minute = 0

    package init() {}

    /// Called once a minute.
    package mutating func note(_ counters: WorkerCounters) {
        minute += 1
        for (slot, entry) in counters.entries.enumerated() {
            if slot >= entries.count { entries += Array(repeating: Series(), count: slot + 1 - entries.count) }
            entries[slot].note(entry.requests, minute: minute)
            guard entry.hasPinFailures else { continue }
            pinFailures[slot, default: PinFailures()].missed.note(entry.pinsMissed, minute: minute)
            pinFailures[slot, default: PinFailures()].reported.note(entry.pinsReported, minute: minute)
        }
        exchanges.note(counters.requests, minute: minute)
        refusals.note(counters.refused, minute: minute)
    }

    package func hits(_ names: [String]) -> [String: [UInt64]] {
        var hits: [String: [UInt64]] = [:]
        for (slot, series) in entries.enumerated() where slot < names.count && series.counts.contains(where: { $0 > 0 })
        {
            hits[names[slot]] = series.counts
        }
        return hits
    }

    package var exchangesByMinute: [UInt64] { exchanges.counts }
    package var refusalsByMinute: [UInt64] { refusals.counts }

    package func lastHour(_ counters: WorkerCounters, _ names: [String]) -> LastHour {
        var hour = LastHour()
        hour.requests = exchanges.lastHour(counters.requests)
        hour.refused = refusals.lastHour(counters.refused)
        for (slot, entry) in counters.entries.enumerated() where entry.hasPinFailures {
            let series = pinFailures[slot] ?? PinFailures()
            let (missed, reported) = (
                series.missed.lastHour(entry.pinsMissed), series.reported.lastHour(entry.pinsReported)
            )
            guard missed > 0 || reported > 0 else { continue }
            hour.pinsMissed += missed
            hour.pinsReported += reported
            let name = slot < names.count ? names[slot] : "(others)"
            hour.pinFailures.append(LastHour.Entry(entry: name, missed: missed, reported: reported))
        }
        hour.pinFailures.sort { ($0.missed, $0.reported, $1.entry) > ($1.missed, $1.reported, $0.entry) }
        hour.pinFailures = Array(hour.pinFailures.prefix(LastHour.entryLimit))
        return hour
    }
}

extension WorkerCounters {
    package var requests: UInt64 { entries.reduce(0) { $0 + $1.requests } }
    package var refused: UInt64 { entries.reduce(0) { $0 + $1.refused } }
    package var broken: UInt64 { entries.reduce(0) { $0 + $1.broken } }
}

extension WorkerCounters.Entry {
    /// Exchanges, without CONNECTs with requests inside.
    package var requests: UInt64 {
        var sum: UInt64 = 0
        for kind in WorkerCounters.Kind.allCases where kind != .interception {
            for outcome in WorkerCounters.Outcome.allCases { sum += exchanges(kind, outcome) }
        }
        // A refused CONNECT has no requests.
        return sum + exchanges(.interception, .refused)
    }

    var refused: UInt64 { WorkerCounters.Kind.allCases.reduce(0) { $0 + exchanges($1, .refused) } }
    var broken: UInt64 { WorkerCounters.Kind.allCases.reduce(0) { $0 + exchanges($1, .broken) } }
    var hasPinFailures: Bool { pinsMissed > 0 || pinsReported > 0 }
}
