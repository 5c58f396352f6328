import EventLoop
import Session

/// How many exchanges each entry had in each of the last 60 minutes. On the main loop; the workers are asked once a
/// minute, and what is kept is bounded by the places of ``EntrySlots``.
final class HitHistory {
    static let minutes = 60

    private struct Series {
        var last: UInt64 = 0
        /// The oldest first.
        var counts: [UInt64] = []

        mutating func note(_ total: UInt64, minute: Int) {
            counts += Array(repeating: 0, count: max(0, min(minute, HitHistory.minutes) - counts.count - 1))
            counts.append(total &- last)
            if counts.count > HitHistory.minutes { counts.removeFirst(counts.count - HitHistory.minutes) }
            last = total
        }
    }

    private var entries: [Series] = []
    private var refusals = Series()
    private var exchanges = Series()
    private var minute = 0

    /// Takes note of what was counted so far; to be told once a minute.
    func note(_ counters: WorkerCounters) {
        minute += 1
        var (total, refused): (UInt64, UInt64) = (0, 0)
        for (slot, entry) in counters.entries.enumerated() {
            if slot >= entries.count { entries += Array(repeating: Series(), count: slot + 1 - entries.count) }
            entries[slot].note(entry.requests, minute: minute)
            total += entry.requests
            refused += entry.refused
        }
        exchanges.note(total, minute: minute)
        refusals.note(refused, minute: minute)
    }

    /// By the entries' names.
    func hits(_ names: [String]) -> [String: [UInt64]] {
        var hits: [String: [UInt64]] = [:]
        for (slot, series) in entries.enumerated() where slot < names.count && series.counts.contains(where: { $0 > 0 }) {
            hits[names[slot]] = series.counts
        }
        return hits
    }

    var exchangesByMinute: [UInt64] { exchanges.counts }
    var refusalsByMinute: [UInt64] { refusals.counts }
}

extension WorkerCounters.Entry {
    /// Exchanges, without the CONNECTs whose requests are exchanges of their own.
    var requests: UInt64 {
        var sum: UInt64 = 0
        for kind in WorkerCounters.kinds where kind != .interception {
            for outcome in WorkerCounters.Outcome.allCases { sum += exchanges(kind, outcome) }
        }
        // A refused CONNECT has no requests.
        return sum + exchanges(.interception, .refused)
    }

    var refused: UInt64 { WorkerCounters.kinds.reduce(0) { $0 + exchanges($1, .refused) } }
    var broken: UInt64 { WorkerCounters.kinds.reduce(0) { $0 + exchanges($1, .broken) } }
}
