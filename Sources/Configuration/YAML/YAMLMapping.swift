/// The pairs of a mapping in order, each key once, and what merge keys (`<<`) add.
struct YAMLMapping {
    enum Addition {
        case added
        case duplicate(ofLine: Int)
        /// `<<` with a value that has no pairs.
        case notMergeable
    }

    /// Below that, looking through the pairs is faster than a dictionary.
    private static let few = 8

    private var pairs: [YAMLPair] = []
    private var more: [YAMLPair] = []
    private var mergedInLine: Int?
    /// The lines of all keys, once these are more than ``few``.
    private var lines: [String: Int] = [:]

    /// - Parameter merges: whether it is a merge key.
    mutating func add(_ pair: YAMLPair, merges: Bool) -> Addition {
        if let line = merges ? mergedInLine : line(ofKey: pair.key) { return .duplicate(ofLine: line) }
        if merges {
            mergedInLine = pair.line
            guard let merged = Self.pairs(toMerge: pair.value) else { return .notMergeable }
            more = merged
            return .added
        }
        pairs.append(pair)
        if pairs.count == Self.few {
            for pair in pairs { lines[pair.key] = pair.line }
        } else if pairs.count > Self.few {
            lines[pair.key] = pair.line
        }
        return .added
    }

    private func line(ofKey key: String) -> Int? {
        pairs.count < Self.few ? pairs.first { $0.key == key }?.line : lines[key]
    }

    /// Written pairs win over merged ones, and of these the first.
    var merged: [YAMLPair] {
        guard !more.isEmpty else { return pairs }
        var all = pairs
        var names = Set(pairs.map(\.key))
        for pair in more where names.insert(pair.key).inserted { all.append(pair) }
        return all
    }

    private static func pairs(toMerge value: YAMLValue) -> [YAMLPair]? {
        switch value.content {
        case .mapping(let pairs): return pairs
        case .sequence(let list):
            var all: [YAMLPair] = []
            for element in list {
                guard case .mapping(let pairs) = element.content else { return nil }
                all += pairs
            }
            return all
        case .null, .scalar, .set: return nil
        }
    }
}
