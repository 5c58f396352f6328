package import Configuration
import Security
import Synchronization

/// Where exchanges are counted by entry: bounded, the same for all workers, and kept over reloads by pattern.
///
/// An entry gets one at its first use, and keeps it (``Configuration/HostEntry/slot``): a request pays one load.
package final class EntrySlots: Sendable {
    /// Where no entry decided, and where those are counted that found no place.
    package static let none = 0
    package static let others = 1
    /// Of the proxy's own test hosts: what is tried with them isn't counted anywhere.
    package static let uncounted = -2

    private let capacity: Int
    private let table = Mutex(Table())

    private struct Table {
        var names = ["(defaults)", "(others)"]
        package var places: [String: Int] = [:]
        /// Those of entries with pins, of this configuration or an earlier one.
        var pinned: Set<Int> = [others]
    }

    /// - Parameter capacity: entries counted by themselves; each is a time series for each protocol and outcome.
    package init(capacity: Int = 1000) { self.capacity = capacity }

    package func place(of entry: HostEntry?) -> Int {
        guard let entry else { return Self.none }
        let known = entry.slot.load(ordering: .relaxed)
        return known == HostEntry.noSlot ? take(entry) : known
    }

    /// Gives entries with pins their places before they are used, so that their series begin at 0. Prometheus' `increase`
    /// doesn't see the first count of a series that begins with it. Called before a configuration is put into force.
    package func reserve(for entries: [HostEntry]) {
        for entry in entries where entry.policy.mode != .none {
            let place = place(of: entry)
            // The others after it find none either.
            if place == Self.others { return }
            table.withLock { _ = $0.pinned.insert(place) }
        }
    }

    private func take(_ entry: HostEntry) -> Int {
        let place = table.withLock { table in
            if let place = table.places[entry.pattern] { return place }
            guard table.places.count < capacity else { return Self.others }
            table.names.append(entry.pattern)
            table.places[entry.pattern] = table.names.count - 1
            return table.names.count - 1
        }
        entry.slot.store(place, ordering: .relaxed)
        return place
    }

    package var names: [String] { table.withLock { $0.names } }
    package var pinned: Set<Int> { table.withLock { $0.pinned } }
}
