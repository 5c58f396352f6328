/// The distinct patterns of a ``HostTable``. Immutable.
package final class HostPatterns: Sendable {
    // Not generic over the table's values, which would take twice as long.
    let index: HostIndex
    package var count: Int { index.count }

    private init(_ index: HostIndex) { self.index = index }

    /// Numbered patterns, in the order given.
    package struct Numbering: Sendable {
        package let patterns: HostPatterns
        /// For each pattern given: its number, or that of an equal one.
        package let numbers: [Int]
        /// Repeated patterns, as indices of the given list, for the caller to report; the first one counts.
        package let duplicates: [(later: Int, first: Int)]
    }

    package static func number(_ list: [HostPattern]) -> Numbering {
        var index = HostIndex(for: list)
        var numbers: [Int] = []
        var firsts: [Int] = []
        var duplicates: [(later: Int, first: Int)] = []
        numbers.reserveCapacity(list.count)
        firsts.reserveCapacity(list.count)
        for (position, pattern) in list.enumerated() {
            let (place, isNew) = index.insert(pattern)
            numbers.append(place)
            if isNew { firsts.append(position) } else { duplicates.append((position, firsts[place])) }
        }
        return Numbering(patterns: HostPatterns(index), numbers: numbers, duplicates: duplicates)
    }

    /// The pattern with a number from ``number(_:)``.
    package func pattern(_ number: Int) -> HostPattern { index.pattern(at: number) }
}

extension HostPatterns.Numbering {
    /// A table of the patterns and their values; of equal patterns the first one's.
    package func table<Value>(of values: [Value]) -> HostTable<Value> {
        let left = Set(duplicates.map(\.later))
        return HostTable(
            patterns, left.isEmpty ? values : values.indices.filter { !left.contains($0) }.map { values[$0] })
    }
}
