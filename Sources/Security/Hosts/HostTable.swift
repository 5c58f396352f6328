/// The entries of the pin file by host: one question, one answer, at the cost of a few probes.
///
/// A lookup reads the host once, from its end, and at each dot has the hash of the suffix that
/// begins there; so it asks the table once for each label, whatever the number of entries, and
/// allocates nothing (an address does: its canonical text). What it asks is numbers that lie close
/// together, whatever the processor's caches hold (``HostIndex``). Ranks that no entry uses are not asked
/// for at all. The rules of precedence are those of ``HostPattern``.
///
/// The table is built once for each generation of the configuration, and immutable.
package struct HostTable<Value: Sendable>: Sendable {
    package struct Entry: Sendable {
        package let pattern: HostPattern
        package let value: Value
    }

    /// Patterns that were given more than once, as indices of the list given: the later one and
    /// the first. Each is a mistake for the caller to report; the first entry holds the place.
    package let duplicates: [(later: Int, first: Int)]

    // The search knows nothing of the values: as generic code it would take twice as long.
    private let index: HostIndex
    private let patterns: [HostPattern]
    private let values: [Value]

    package init(_ list: [(pattern: HostPattern, value: Value)] = []) {
        var index = HostIndex(capacity: list.count)
        var patterns: [HostPattern] = []
        var values: [Value] = []
        var positions: [Int] = []
        var duplicates: [(later: Int, first: Int)] = []
        patterns.reserveCapacity(list.count)
        values.reserveCapacity(list.count)
        positions.reserveCapacity(list.count)
        for (position, (pattern, value)) in list.enumerated() {
            if let first = index.insert(pattern) {
                duplicates.append((later: position, first: positions[first]))
            } else {
                patterns.append(pattern)
                values.append(value)
                positions.append(position)
            }
        }
        self.index = index
        self.patterns = patterns
        self.values = values
        self.duplicates = duplicates
    }

    /// In the order in which they were given, without the duplicates.
    package var entries: [Entry] { values.indices.map(entry) }

    /// The value for a host, or `nil` when no entry speaks for it: as ``entry(forHost:port:)``, without
    /// a look at the pattern.
    package func value(forHost host: String, port: UInt16) -> Value? {
        index.find(host, port: port).map { values[$0] }
    }

    /// The entry that decides for a host, or `nil` when none speaks for it.
    /// - Parameter host: a name in any case, with or without its trailing dot, or an address
    ///   without brackets.
    package func entry(forHost host: String, port: UInt16) -> Entry? {
        guard let place = index.find(host, port: port) else { return nil }
        return entry(place)
    }

    private func entry(_ place: Int) -> Entry {
        Entry(pattern: patterns[place], value: values[place])
    }
}
