/// Builds the tree of a form's names, one pair at a time.
final class FormTree {
    enum Step {
        /// UTF-8; keys that differ in bytes are two.
        case key([UInt8])
        case element
    }

    enum Kind {
        case undecided, dictionary, list
        /// One value, or more under a name that repeats.
        case leaves
    }

    private var kind: Kind
    private var leaves: [ParameterValue] = []
    private var children: [(key: [UInt8], tree: FormTree)] = []
    /// Indices of the children by name, once there are more than a few: most have one, and there may be millions.
    private var places: [[UInt8]: Int] = [:]
    private static let few = 8

    init(_ kind: Kind = .undecided) { self.kind = kind }

    /// - Returns: why it contradicts existing values, in human-readable form; nil: it is inserted.
    func insert(_ leaf: ParameterValue, at steps: ArraySlice<Step>) -> String? {
        var tree = self
        var rest = steps
        while let step = rest.popFirst() {
            switch (step, tree.kind) {
            case (.key, .undecided): tree.kind = .dictionary
            case (.element, .undecided): tree.kind = .list
            case (.key, .dictionary), (.element, .list): break
            case (_, .leaves): return "has a value already, and can't contain others"
            case (.key, .list): return "is a list, and can't have keys"
            case (.element, .dictionary): return "has keys, and can't be a list"
            }
            switch step {
            case .key(let key): tree = tree.child(key)
            case .element:
                if case .element = rest.first { return "is a list within a list, and a form can't say where it ends" }
                tree = tree.element(for: rest)
            }
        }
        switch tree.kind {
        case .undecided, .leaves:
            tree.kind = .leaves
            tree.leaves.append(leaf)
        case .dictionary, .list: return "contains others already, and can't be a value"
        }
        return nil
    }

    private func child(_ key: [UInt8]) -> FormTree {
        if let child = find(key) { return child }
        let child = FormTree()
        children.append((key, child))
        if children.count == Self.few + 1 {
            for (place, child) in children.enumerated() { places[child.key] = place }
        } else if children.count > Self.few {
            places[key] = children.count - 1
        }
        return child
    }

    private func find(_ key: [UInt8]) -> FormTree? {
        if children.count <= Self.few { return children.first { $0.key == key }?.tree }
        return places[key].map { children[$0].tree }
    }

    /// The last element, if it is a dictionary without the rest of the name; else a new one.
    private func element(for rest: ArraySlice<Step>) -> FormTree {
        if !rest.isEmpty, let last = children.last?.tree, !last.contains(rest) { return last }
        let element = FormTree()
        children.append(([], element))
        return element
    }

    private func contains(_ steps: ArraySlice<Step>) -> Bool {
        var tree = self
        for step in steps {
            guard case .key(let key) = step, let child = tree.find(key) else { return false }
            tree = child
        }
        return true
    }

    var value: ParameterValue {
        switch kind {
        case .undecided: .null
        case .leaves: leaves.count == 1 ? leaves[0] : .array(leaves)
        case .list: .array(children.map(\.tree.value))
        case .dictionary:
            .dictionary(
                children.map { ParameterValue.Pair(key: String(decoding: $0.key, as: UTF8.self), value: $0.tree.value) }
            )
        }
    }
}
