/// The patterns of a ``HostTable``, each once. Immutable.
package final class HostPatterns: Sendable {
    // The search knows nothing of the table's values: as generic code it would take twice as long.
    let index: HostIndex
    package var count: Int { index.count }

    private init(_ index: HostIndex) { self.index = index }

    /// Patterns in the order given, and what became of each of them.
    package struct Numbering: Sendable {
        package let patterns: HostPatterns
        /// Of each pattern given: the number by which it is known, its own or that of an equal one.
        package let numbers: [Int]
        /// Repeated patterns, as indices of the given list, for the caller to report; the first holds the place.
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

    /// The pattern of a number that ``number(_:)`` has given.
    package func pattern(_ number: Int) -> HostPattern { index.pattern(at: number) }
}

extension HostPatterns.Numbering {
    /// A table of the patterns, and of the values that were given with them: of equal patterns the first one's.
    package func table<Value>(of values: [Value]) -> HostTable<Value> {
        let left = Set(duplicates.map(\.later))
        return HostTable(patterns, left.isEmpty ? values : values.indices.filter { !left.contains($0) }.map { values[$0] })
    }
}
