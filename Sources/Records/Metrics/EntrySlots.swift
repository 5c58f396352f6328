package import PinproxyConfiguration
import PinproxySecurity
import Synchronization

/// The places of counts by entry: bounded, the same for all workers, and kept over reloads by pattern. An entry caches
/// its place (``Configuration/HostEntry/slot``): a request pays one load.
package final class EntrySlots: Sendable {
    /// For no entry, and for entries without a place.
    package static let none = 0
    package static let others = 1
    /// The slot of test hosts, which aren't counted.
    package static let uncounted = -2

    private let capacity: Int
    private let table = Mutex(Table())

    private struct Table {
        var names = ["(defaults)", "(others)"]
        package var places: [String: Int] = [:]
        /// Slots of entries with pins, also of earlier configurations.
        var pinned: Set<Int> = [others]
    }

    /// - Parameter capacity: of entries; each has a time series for each protocol and outcome.
    package init(capacity: Int = 1000) { self.capacity = capacity }

    package func place(of entry: HostEntry?) -> Int {
        guard let entry else { return Self.none }
        let known = entry.slot.load(ordering: .relaxed)
        return known == HostEntry.noSlot ? take(entry) : known
    }

    /// Gives entries with pins their places early, so that their series begin at 0: Prometheus' `increase` doesn't see
    /// the first count of a series that begins with it. Called before a configuration takes effect.
    package func reserve(for entries: [HostEntry]) {
        for entry in entries where entry.policy.mode != .none {
            let place = place(of: entry)
            // All places are taken.
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
