package import PinproxyTLS

/// The use of each entry's pins, kept over restarts: shows dead pins, and report-only entries that are ready to
/// enforce.
///
/// Verifications are counted, one per connection. Entries go by their pattern and pins by their value
/// (`Pin.description`). Removed ones are kept for a while, for rollbacks.
///
/// ```json
/// {"entries": {"api.example.com": {"since": 1893456000, "accepted": 7, "misses": 1, "lastMiss": 1893459600,
///   "matchesSinceMiss": 3, "pins": {"sha256/…": {"since": 1893456000, "matches": 6, "first": …, "last": …}}}}}
/// ```
package struct PinHistory: Codable, Sendable, Equatable {
    package struct PinRecord: Codable, Sendable, Equatable {
        /// When the pin was first in a matched entry.
        package var since: UnixTime
        package var matches = 0
        package var first: UnixTime?
        package var last: UnixTime?
        /// When the pin was found removed.
        package var removed: UnixTime?
    }

    package struct EntryRecord: Codable, Sendable, Equatable {
        package var since: UnixTime
        package var accepted = 0
        package var misses = 0
        package var lastMiss: UnixTime?
        /// Counts towards `enforcement: enforce`.
        package var matchesSinceMiss = 0
        /// Seconds from the first of these matches to the last one. A longer gap counts as a day: neither a clock that
        /// is set forward nor a machine that is off is evidence.
        package var matchedFor: Int64?
        /// The last of these matches; nil: there was none.
        package var lastMatch: UnixTime?
        /// The mode and position of the counted matches. Those of another don't count for this one.
        package var terms: String?
        /// Misses before the last pin was added: the correction may have ended them.
        package var missesBeforeChange: Int?
        /// Since when the entry's `enforcement` is `report`; nil: it isn't.
        package var reportOnlySince: UnixTime?
        package var pins: [String: PinRecord] = [:]
        package var removed: UnixTime?

        package init(since: UnixTime) { self.since = since }
    }

    /// The settings of an entry's pins.
    package struct Configured: Sendable {
        let pins: [String]
        let terms: String

        package init(_ policy: SecurityPolicy) {
            pins = policy.pins.pins.map(\.description)
            terms = "\(policy.mode.rawValue) \(policy.position.rawValue)"
        }

        package init(pins: [String], terms: String = "") {
            (self.pins, self.terms) = (pins, terms)
        }
    }

    package enum Outcome: Sendable, Equatable {
        /// The values of all matching pins, so that a backup is known to be alive.
        case matched([String])
        /// No pin matched; the connection was refused, or reported.
        case missed
    }

    package private(set) var entries: [String: EntryRecord] = [:]

    package init() {}

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        entries = try values.decode([String: EntryRecord].self, forKey: .entries)
        guard let name = entries.first(where: { !$0.value.isWithinBounds })?.key else { return }
        throw DecodingError.dataCorruptedError(
            forKey: .entries, in: values, debugDescription: "a count or a date of \(name) is out of bounds")
    }

    package static let fileName = "pins.json"

    /// How long removed entries and pins are kept: a quarter, the life of most leaves.
    package static let retention: Int64 = 90 * 86_400
    /// Entries, and pins of each. Only those with connections count.
    package static let maximumEntries = 10_000
    package static let maximumPinsOfEntry = 100

    /// Adds an entry and its pins, so that unmatched pins show. False if it is full.
    package mutating func note(
        entry: String, _ configured: Configured, isReportOnly: Bool = false, at time: UnixTime
    ) -> Bool {
        if entries[entry] == nil, entries.count >= Self.maximumEntries { return false }
        let pins = configured.pins
        var record = entries[entry] ?? EntryRecord(since: time)
        record.compare(with: configured)
        record.removed = nil
        record.reportOnlySince = isReportOnly ? record.reportOnlySince ?? time : nil
        if record.lacks(anyOf: pins) { record.missesBeforeChange = record.misses }
        for pin in pins where record.pins[pin] != nil || record.pins.count < Self.maximumPinsOfEntry {
            record.pins[pin, default: PinRecord(since: time)].removed = nil
        }
        entries[entry] = record
        return true
    }

    /// Counts a verification for a known entry.
    package mutating func count(_ outcome: Outcome, for entry: String, at time: UnixTime) {
        guard let index = entries.index(forKey: entry) else { return }
        switch outcome {
        case .matched(let pins):
            entries.values[index].accepted += 1
            entries.values[index].matched(at: time)
            for pin in pins {
                guard var record = entries.values[index].pins[pin] else { continue }
                record.matches += 1
                record.first = record.first ?? time
                record.last = time
                entries.values[index].pins[pin] = record
            }
        case .missed:
            entries.values[index].misses += 1
            entries.values[index].beginAnew()
            entries.values[index].lastMiss = time
        }
    }

    /// Marks what is no longer configured, and drops it after ``retention``. `configuration`: nil for no such entry.
    package mutating func settle(at time: UnixTime, _ configuration: (String) -> Configured?) {
        for (name, old) in entries {
            var entry = old
            let configured = configuration(name)
            entry.compare(with: configured)
            entry.removed = configured == nil ? entry.removed ?? time : nil
            let pins = Set(configured?.pins ?? [])
            for (pin, record) in entry.pins {
                let removed = pins.contains(pin) ? nil : record.removed ?? time
                entry.pins[pin]?.removed = removed
                if Self.isForgotten(removed, at: time) { entry.pins[pin] = nil }
            }
            entries[name] = Self.isForgotten(entry.removed, at: time) ? nil : entry
        }
    }

    /// Forgets what counts towards `enforcement: enforce`.
    package mutating func beginAnew(_ entry: String) {
        entries[entry]?.beginAnew()
    }

    private static func isForgotten(_ removed: UnixTime?, at time: UnixTime) -> Bool {
        removed.map { time - $0 > retention } ?? false
    }
}

/// Dead pins: no match for long, while others of their entry matched.
extension PinHistory {
    static let deadAfter: Int64 = 30 * 86_400
}

extension PinHistory.EntryRecord {
    /// Some pin has matched lately.
    package func isAlive(at now: UnixTime) -> Bool {
        pins.values.contains { pin in
            pin.removed == nil && pin.last.map { now - $0 < PinHistory.deadAfter } == true
        }
    }
}

extension PinHistory.PinRecord {
    /// No match for long: it is dead if its entry is alive.
    package func isSilent(at now: UnixTime) -> Bool { now - (last ?? since) >= PinHistory.deadAfter }
}

extension PinHistory.EntryRecord {
    /// Whether a pin was added since the last connection. Unknown (false) for more pins than are kept.
    package func lacks(anyOf pins: [String]) -> Bool {
        pins.contains { self.pins[$0].map { $0.removed != nil } ?? (self.pins.count < PinHistory.maximumPinsOfEntry) }
    }

    /// Whether enough consecutive connections have matched a pin, for long enough.
    package func meets(_ condition: EnforcementCondition) -> Bool {
        removed == nil && matchesSinceMiss >= max(condition.matches, 1)
            && (matchedFor ?? 0) >= Int64(condition.days) * Self.longestGap
    }

    /// The part of a gap between two matches that counts.
    private static let longestGap: Int64 = 86_400

    fileprivate mutating func matched(at time: UnixTime) {
        matchesSinceMiss += 1
        let gap = lastMatch.map { time - $0 } ?? 0
        matchedFor = (matchedFor ?? 0) + min(max(gap, 0), Self.longestGap)
        lastMatch = time
    }

    fileprivate mutating func beginAnew() {
        (matchesSinceMiss, matchedFor, lastMatch) = (0, nil, nil)
    }

    /// Forgets matches by a removed pin, with another position, or of a removed entry (nil).
    fileprivate mutating func compare(with configured: PinHistory.Configured?) {
        defer { terms = configured?.terms ?? terms }
        guard let configured else {
            if removed == nil { beginAnew() }
            return
        }
        let present = Set(configured.pins)
        if terms.map({ $0 != configured.terms }) == true
            || pins.contains(where: { $0.value.removed == nil && !present.contains($0.key) })
        {
            beginAnew()
        }
    }

    /// Misses with the present pins.
    package var missesSinceChange: Int { misses - (missesBeforeChange ?? 0) }

    fileprivate var isWithinBounds: Bool {
        HistoryBounds.admit(
            counts: accepted, misses, matchesSinceMiss, missesBeforeChange ?? 0, missesSinceChange,
            Int(clamping: matchedFor ?? 0))
            && HistoryBounds.admit(dates: since, lastMiss, lastMatch, removed, reportOnlySince)
            && pins.values.allSatisfy { pin in
                HistoryBounds.admit(counts: pin.matches)
                    && HistoryBounds.admit(dates: pin.since, pin.first, pin.last, pin.removed)
            }
    }
}
