internal import HTTPWire
internal import Yams

/// Turns the bytes of a file into one YAMLValue, or says why not. Bounded for any input: Yams
/// bounds the depth of nesting, KeyShapes refuses the keys that would be expensive to compare, and
/// what aliases expand to is counted here.
struct YAMLDocument {
    /// More values than any real file has once its aliases are followed (100,000 hosts have about
    /// 700,000).
    static let valueLimit = 2_000_000
    /// After so many duplicate keys the file is not searched for more.
    static let duplicateLimit = 20

    private let file: String
    private let findings: Findings
    private var text: MarkedText
    private var values = 0
    /// That of scalars without a tag.
    private let implicit = Tag.implicit

    /// The root of the file; nil if it holds nothing, or if there was an error, which is then
    /// among the findings.
    static func compose(_ bytes: [UInt8], file: String, findings: Findings) -> YAMLValue? {
        guard var document = YAMLDocument(bytes, file: file, findings: findings) else { return nil }
        guard let root = document.root() else { return nil }
        return document.value(root)
    }

    private init?(_ bytes: [UInt8], file: String, findings: Findings) {
        switch MarkedText.decode(bytes) {
        case .failure(let defect):
            findings.error(
                Place(file: file, line: defect.line, column: defect.column), defect.message)
            return nil
        case .success(let text):
            self.file = file
            self.findings = findings
            self.text = text
        }
    }

    /// Yams refuses duplicate keys one at a time. Each is marked, which makes it unique, until
    /// the rest of the file can be read; `value(_:)` reports them all with their places.
    private mutating func root() -> Node? {
        while true {
            do {
                // `.basic` leaves every scalar alone; its encoding is fixed so that no variable
                // of the environment can change it.
                return try Parser(yaml: text.string, resolver: .basic, encoding: .utf8).singleRoot()
            } catch YamlError.duplicatedKeysInMapping(let names, let context) {
                let (line, column) = (context.mark.line, context.mark.column)
                let isMarked = text.duplicates < Self.duplicateLimit && text.markDuplicate(line: line, column: column)
                if isMarked { continue }
                findings.error(
                    Place(file: file, line: line, column: column),
                    "key \"\(ShownText(text.restored(names.first ?? "")))\" is written more than once in the same mapping")
                return nil
            } catch let error as YamlError {
                let (place, message) = Self.explain(error, in: text)
                findings.error(Place(file: file, line: place?.line, column: place?.column), message)
                return nil
            } catch {
                findings.error(Place(file: file), "can't be read as YAML: \(error)")
                return nil
            }
        }
    }

    private mutating func value(_ node: Node) -> YAMLValue? {
        let (line, column) = (node.mark?.line ?? 1, node.mark?.column ?? 1)
        values += 1
        guard values <= Self.valueLimit else {
            if values == Self.valueLimit + 1 {
                findings.error(
                    Place(file: file, line: line, column: column),
                    "its aliases expand to more than \(Self.valueLimit) values")
            }
            return nil
        }
        let content: YAMLValue.Content
        var isWord = false
        switch node {
        case .scalar(let scalar):
            isWord = scalar.style == .plain && scalar.tag == implicit
            let isNull = scalar.style == .plain && ["", "~", "null", "Null", "NULL"].contains(scalar.string)
            content = isNull ? .null : .scalar(text.restored(scalar.string))
        case .sequence(let sequence):
            var list: [YAMLValue] = []
            list.reserveCapacity(sequence.count)
            for element in sequence {
                guard let element = value(element) else { return nil }
                list.append(element)
            }
            content = .sequence(list)
        case .mapping(let mapping):
            guard let pairs = pairs(of: mapping) else { return nil }
            content = .mapping(pairs)
        case .alias:
            // Yams has put the value in its place.
            return nil
        }
        return YAMLValue(content: content, isWord: isWord, line: line, column: column)
    }

    private mutating func pairs(of mapping: Node.Mapping) -> [YAMLPair]? {
        var pairs: [YAMLPair] = []
        var merged: [YAMLPair] = []
        var places: [String: Int] = [:]
        for (key, node) in mapping {
            let (line, column) = (key.mark?.line ?? 1, key.mark?.column ?? 1)
            let place = Place(file: file, line: line, column: column)
            guard let value = value(node) else { return nil }
            guard case .scalar(let scalar) = key else {
                findings.error(place, "a key must be a word, not \(kind(of: key))")
                continue
            }
            if scalar.style == .plain, scalar.string == "<<" {
                guard let more = merge(value) else {
                    findings.error(place, "\"<<\" takes a mapping or a list of mappings, e.g. <<: *name")
                    continue
                }
                merged += more
                continue
            }
            let name = text.restoredKey(scalar.string)
            // Yams has refused all that aren't marked.
            if text.duplicates > 0, let first = places.updateValue(line, forKey: name) {
                findings.error(place, "key \"\(ShownText(name))\" is already written in line \(first)")
                places[name] = first
                continue
            }
            pairs.append(YAMLPair(key: name, line: line, column: column, value: value))
        }
        guard !merged.isEmpty else { return pairs }
        // What is written wins over what is merged, and of that the first.
        var names = Set(pairs.map(\.key))
        for pair in merged where names.insert(pair.key).inserted { pairs.append(pair) }
        return pairs
    }

    private func merge(_ value: YAMLValue) -> [YAMLPair]? {
        switch value.content {
        case .mapping(let pairs): return pairs
        case .sequence(let list):
            var all: [YAMLPair] = []
            for element in list {
                guard case .mapping(let pairs) = element.content else { return nil }
                all += pairs
            }
            return all
        case .null, .scalar: return nil
        }
    }

    private func kind(of node: Node) -> String {
        if case .sequence = node { "a list" } else { "a mapping" }
    }
}
