/// The leaf values of parameters with their form names (AFQueryStringPairsFromDictionary): `k[sub]` of a dictionary,
/// `k[]` of an array, `k` of a set, sorted; none of an empty container.
struct ParameterLeaves {
    /// Appends a piece of a name to it.
    let spell: (_ piece: String, _ name: inout [UInt8]) -> Void

    /// Calls for each leaf, in order, with its name and its text, nil for null.
    func forEach(of parameters: [ParameterValue.Pair], _ body: (_ name: [UInt8], _ text: String?) -> Void) {
        var name: [UInt8] = []
        for pair in parameters {
            name.removeAll(keepingCapacity: true)
            spell(pair.key, &name)
            visit(pair.value, &name, body)
        }
    }

    /// One buffer holds the name, which grows on the way down and shrinks on the way up.
    private func visit(_ value: ParameterValue, _ name: inout [UInt8], _ body: ([UInt8], String?) -> Void) {
        let length = name.count
        switch value {
        case .dictionary(let pairs):
            spell("[", &name)
            let inner = name.count
            for pair in pairs {
                spell(pair.key, &name)
                spell("]", &name)
                visit(pair.value, &name, body)
                name.removeLast(name.count - inner)
            }
        case .array(let values):
            spell("[]", &name)
            for value in values { visit(value, &name, body) }
        case .set(let values):
            for value in values.sorted(by: Self.precedes) { visit(value, &name, body) }
        case .string(let text), .number(let text): body(name, text)
        case .bool(let value): body(name, value ? "true" : "false")
        case .null: body(name, nil)
        }
        if name.count > length { name.removeLast(name.count - length) }
    }

    /// The order of a set: by the names and texts of the leaves, byte by byte. What has the same is sent alike.
    private static func precedes(_ one: ParameterValue, _ other: ParameterValue) -> Bool {
        sortingKey(of: one).lexicographicallyPrecedes(sortingKey(of: other))
    }

    private static func sortingKey(of value: ParameterValue) -> [UInt8] {
        var key: [UInt8] = []
        var name: [UInt8] = []
        ParameterLeaves { $1 += $0.utf8 }.visit(value, &name) { name, text in
            key += name
            key += (text ?? "").utf8
        }
        return key
    }
}
