package import TLS

/// What became of each entry's pins, kept over restarts, so that a person can be told which pin is
/// dead, and which report-only entry is ready to enforce.
///
/// Counted are verifications, one for each connection to an origin and not for each request. Entries
/// go by their pattern and pins by their value (`Pin.description`), so that a pin keeps its count
/// however it is written. What is no longer configured is remembered for a while: a pin that
/// comes back after a rollback has its history.
///
/// ```json
/// {"entries": {"api.example.com": {"since": 1893456000, "accepted": 7, "misses": 1, "lastMiss": 1893459600,
///   "matchesSinceMiss": 3, "pins": {"sha256/…": {"since": 1893456000, "matches": 6, "first": …, "last": …}}}}}
/// ```
package struct PinHistory: Codable, Sendable, Equatable {
    package struct PinRecord: Codable, Sendable, Equatable {
        /// When the pin was first among those of an entry that was asked.
        package var since: UnixTime
        package var matches = 0
        package var first: UnixTime?
        package var last: UnixTime?
        /// When the pin was found to be no longer configured.
        package var removed: UnixTime?
    }

    package struct EntryRecord: Codable, Sendable, Equatable {
        package var since: UnixTime
        package var accepted = 0
        package var misses = 0
        /// The last of the misses.
        package var lastMiss: UnixTime?
        /// What counts for a promotion to `enforcement: enforce`.
        package var matchesSinceMiss = 0
        package var pins: [String: PinRecord] = [:]
        package var removed: UnixTime?
    }

    package enum Outcome: Sendable, Equatable {
        /// All pins that the chain matches, by their values, so that a matching backup is known to be alive.
        case matched([String])
        /// None did; the connection was refused, or let through and reported.
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

    /// In the state directory.
    package static let fileName = "pins.json"

    /// How long what is no longer configured is remembered: a quarter, the life of most leaves.
    package static let retention: Int64 = 90 * 86_400
    /// Entries at most, and pins of each. Those that no connection was made for take no place.
    package static let maximumEntries = 10_000
    package static let maximumPinsOfEntry = 100

    /// Makes an entry and its pins known, so that unmatched pins show. False if there is no room for it.
    package mutating func note(entry: String, pins: [String], at time: UnixTime) -> Bool {
        if entries[entry] == nil, entries.count >= Self.maximumEntries { return false }
        var record = entries[entry] ?? EntryRecord(since: time)
        record.removed = nil
        for pin in pins where record.pins[pin] != nil || record.pins.count < Self.maximumPinsOfEntry {
            record.pins[pin, default: PinRecord(since: time)].removed = nil
        }
        entries[entry] = record
        return true
    }

    /// Counts a verification for an entry that was noted; others are not counted.
    package mutating func count(_ outcome: Outcome, for entry: String, at time: UnixTime) {
        guard let index = entries.index(forKey: entry) else { return }
        switch outcome {
        case .matched(let pins):
            entries.values[index].accepted += 1
            entries.values[index].matchesSinceMiss += 1
            for pin in pins {
                guard var record = entries.values[index].pins[pin] else { continue }
                record.matches += 1
                record.first = record.first ?? time
                record.last = time
                entries.values[index].pins[pin] = record
            }
        case .missed:
            entries.values[index].misses += 1
            entries.values[index].matchesSinceMiss = 0
            entries.values[index].lastMiss = time
        }
    }

    /// Marks what is no longer configured, and forgets it after ``retention``. `pins`: nil for no such entry.
    package mutating func settle(at time: UnixTime, pins: (String) -> Set<String>?) {
        for (name, old) in entries {
            var entry = old
            let configured = pins(name)
            entry.removed = configured == nil ? entry.removed ?? time : nil
            for (pin, record) in entry.pins {
                let removed = configured?.contains(pin) == true ? nil : record.removed ?? time
                entry.pins[pin]?.removed = removed
                if Self.isForgotten(removed, at: time) { entry.pins[pin] = nil }
            }
            entries[name] = Self.isForgotten(entry.removed, at: time) ? nil : entry
        }
    }

    private static func isForgotten(_ removed: UnixTime?, at time: UnixTime) -> Bool {
        removed.map { time - $0 > retention } ?? false
    }
}

extension PinHistory.EntryRecord {
    fileprivate var isWithinBounds: Bool {
        HistoryBounds.admit(counts: accepted, misses, matchesSinceMiss)
            && HistoryBounds.admit(dates: since, lastMiss, removed)
            && pins.values.allSatisfy { pin in
                HistoryBounds.admit(counts: pin.matches)
                    && HistoryBounds.admit(dates: pin.since, pin.first, pin.last, pin.removed)
            }
    }
}
