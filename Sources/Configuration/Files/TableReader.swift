/// Reads one of the tables `session`, `request` and `response`, key by key: a wrong value is an error.
final class TableReader<Rules: RuleTable> {
    let section: Section
    private(set) var table = WrittenTable<Rules>()

    init(in section: Section) {
        self.section = Rules.name.isEmpty ? section : section.section(Rules.name)
    }

    /// The value of a key, in whatever form; nil from `read` if it is wrong.
    func key<Value: Sendable>(_ key: Rules.Key, _ field: any RuleField<Rules, Value>, _ read: (YAMLValue) -> Value?) {
        guard let value = section.value(key.rawValue), let right = read(value) else { return }
        table.write(key, field, right, at: section.place(of: value))
    }

    func key<Value: Sendable>(_ key: Rules.Key, _ field: any RuleField<Rules, Value>, _ form: Form<Value>) {
        self.key(key, field) { section.scalar($0, key.rawValue, form) }
    }

    func optional<Value: Sendable>(
        _ key: Rules.Key, _ field: any RuleField<Rules, Value?>, _ read: (YAMLValue) -> Value?
    ) {
        self.key(key, field) { value in value.isNull ? .some(nil) : read(value).map(Optional.some) }
    }

    func optional<Value: Sendable>(_ key: Rules.Key, _ field: any RuleField<Rules, Value?>, _ form: Form<Value>) {
        optional(key, field) { section.scalar($0, key.rawValue, form) }
    }

    /// The elements of a list, each once; nil (with an error) if one is wrong.
    func elements<Value: Hashable>(_ value: YAMLValue, _ key: Rules.Key, _ form: Form<Value>) -> [Value]? {
        guard let list = section.elements(value, key.rawValue) else { return nil }
        var read: [Value] = []
        var isRight = true
        for element in list {
            guard let value = section.scalar(element, key.rawValue, form) else {
                isRight = false
                continue
            }
            if read.contains(value) {
                section.error(element, "\(key.rawValue): \(value) is written twice")
                isRight = false
            }
            read.append(value)
        }
        return isRight ? read : nil
    }

    /// Reads a list that would accept nothing if it were empty.
    func nonEmptyElements<Value: Hashable>(_ value: YAMLValue, _ key: Rules.Key, _ form: Form<Value>) -> [Value]? {
        let read = elements(value, key, form)
        if read?.isEmpty == true {
            section.error(
                value,
                "\(key.rawValue): the list is empty, so nothing would be accepted; write null for the serializer's own")
            return nil
        }
        return read
    }

    func finish() -> WrittenTable<Rules> {
        if !Rules.name.isEmpty { section.finish() }
        return table
    }
}
