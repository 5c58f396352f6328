/// Finds what was meant by a misspelt word.
enum NearestKey {
    /// The nearest candidate, the first of equals, with at most one edit in three letters; nil: none is near.
    static func find(_ word: String, in candidates: [String]) -> String? {
        let normalized = normalize(word)
        var best: (candidate: String, distance: Int)?
        for candidate in candidates {
            let distance = distance(normalized, normalize(candidate))
            guard distance <= max(1, candidate.count / 3), distance < best?.distance ?? .max else { continue }
            best = (candidate, distance)
        }
        return best?.candidate
    }

    /// `Listen-Address` and `listen_address` are the same word to people.
    private static func normalize(_ word: String) -> [Character] {
        Array(word.prefix(64).lowercased().filter { $0 != "_" && $0 != "-" && $0 != " " })
    }

    /// Letters inserted, left out, changed, or swapped with a neighbour (optimal string alignment).
    static func distance(_ from: [Character], _ to: [Character]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...to.count)
        for row in from.indices {
            var current = [row + 1]
            for column in to.indices {
                let change = last[column] + (from[row] == to[column] ? 0 : 1)
                var least = min(change, last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, from[row] == to[column - 1], from[row - 1] == to[column] {
                    least = min(least, beforeLast[column - 1] + 1)
                }
                current.append(least)
            }
            (beforeLast, last) = (last, current)
        }
        return last[to.count]
    }
}
