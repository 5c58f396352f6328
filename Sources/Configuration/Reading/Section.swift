internal import PinproxyHTTPWire

/// A mapping that is being read: it notes the keys that are asked for, and reports the others as unknown at the end.
final class Section {
    /// Its name in messages, e.g. `proxy`; empty for the whole file.
    private let name: String
    private let file: String
    let findings: Findings
    private let pairs: [YAMLPair]
    /// The mapping itself; nil if it isn't written.
    let start: YAMLValue?
    /// In the order of requests, with repetitions.
    private var known: [String] = []
    private var isKnown: [Bool]

    /// - Parameter value: nil if the section isn't written. All of its keys are then absent, as they are (with an
    ///   error) if it is not a mapping.
    init(_ name: String, _ value: YAMLValue?, file: String, findings: Findings) {
        self.name = name
        self.file = file
        self.findings = findings
        start = value
        if case .mapping(let pairs) = value?.content { self.pairs = pairs } else { pairs = [] }
        isKnown = Array(repeating: false, count: pairs.count)
        switch value?.content {
        case nil, .null, .mapping: break
        case .scalar, .sequence, .set:
            guard let value else { break }
            let what = name.isEmpty ? "the file" : "\"\(name)\""
            error(value, "\(what) must be a mapping (key: value), not \(value.kind)\(Self.colonHint(value))")
        }
    }

    private static func colonHint(_ value: YAMLValue) -> String {
        guard case .scalar(let text) = value.content, let hint = YAMLSlip.colonHint(text) else { return "" }
        return "; \(hint)"
    }

    func place(of value: YAMLValue) -> Place { Place(file: file, line: value.line, column: value.column) }

    func error(_ value: YAMLValue, _ message: String) { findings.error(place(of: value), message) }

    /// An error in another file that this section names.
    func error(_ place: Place, _ message: String) { findings.error(place, message) }

    func warning(_ value: YAMLValue, _ message: String) { warning(place(of: value), message) }

    func warning(_ place: Place, _ message: String) { findings.warning(place, message) }

    /// The value of a key, whatever it is; nil if the key isn't written.
    func value(_ key: String) -> YAMLValue? {
        known.append(key)
        guard let index = pairs.firstIndex(where: { $0.key == key }) else { return nil }
        isKnown[index] = true
        return pairs[index].value
    }

    /// Whether a key is written; that alone doesn't make it known.
    func has(_ key: String) -> Bool { pairs.contains { $0.key == key } }

    /// The value of a key, nil where it isn't written or is null.
    func nonNull(_ key: String) -> YAMLValue? {
        value(key).flatMap { $0.isNull ? nil : $0 }
    }

    func section(_ key: String) -> Section {
        Section(key, value(key), file: file, findings: findings)
    }

    /// A mapping that is an element of a list.
    func element(_ name: String, _ value: YAMLValue) -> Section {
        Section(name, value, file: file, findings: findings)
    }

    /// A scalar. Nil if it isn't written, and (with an error) if it can't be read. The form is made only if needed.
    func read<Value>(_ key: String, _ form: @autoclosure () -> Form<Value>) -> Value? {
        value(key).flatMap { scalar($0, key, form()) }
    }

    func readOptional<Value>(_ key: String, _ form: @autoclosure () -> Form<Value>) -> Value? {
        nonNull(key).flatMap { scalar($0, key, form()) }
    }

    func scalar<Value>(_ value: YAMLValue, _ key: String, _ form: Form<Value>) -> Value? {
        switch value.content {
        case .null:
            error(value, "\"\(key)\" has no value; write one, or leave the line out")
        case .sequence, .mapping, .set:
            error(value, "\"\(key)\" takes a single value, not \(value.kind)")
        case .scalar(let text):
            switch form.readShowably(text) {
            case .success(let value): return value
            case .failure(let reason): error(value, "\(key): \(reason.text)")
            }
        }
        return nil
    }

    /// A scalar, or a list of them; each with its place. Nil if it isn't written.
    func list(_ key: String) -> [YAMLValue]? {
        guard let value = value(key) else { return nil }
        switch value.content {
        case .sequence(let list): return list
        case .scalar(let text):
            // A value that may begin with a dash stands in the key's line, or within quotes.
            if value.isWord, value.line > pairs.first(where: { $0.key == key })?.line ?? value.line,
                let hint = YAMLSlip.dashHint(text)
            {
                error(value, "\(key): \(hint)")
                return nil
            }
            return [value]
        case .mapping, .set, .null:
            error(value, "\"\(key)\" takes a value or a list of them, not \(value.kind)")
            return nil
        }
    }

    /// The elements of a list, empty for null. A scalar is its own only element.
    func elements(_ value: YAMLValue, _ key: String) -> [YAMLValue]? {
        switch value.content {
        case .sequence(let list): return list
        case .scalar: return [value]
        case .null: return []
        case .mapping, .set:
            error(value, "\"\(key)\" takes a value or a list of them, not \(value.kind)")
            return nil
        }
    }

    func pairs(_ value: YAMLValue, _ key: String) -> [YAMLPair]? {
        switch value.content {
        case .mapping(let pairs): return pairs
        case .null: return []
        case .scalar, .sequence, .set:
            error(value, "\"\(key)\" takes a mapping (name: value), not \(value.kind)\(Self.colonHint(value))")
            return nil
        }
    }

    func place(of pair: YAMLPair) -> Place { Place(file: file, line: pair.line, column: pair.column) }

    /// True if some written keys have not been requested yet.
    var hasUnreadKeys: Bool { isKnown.contains(false) }

    func finish() {
        guard hasUnreadKeys else { return }
        var names: [String] = []
        for name in known where !names.contains(name) { names.append(name) }
        let whereabouts = name.isEmpty ? "" : " in \"\(name)\""
        for (pair, isKnown) in zip(pairs, isKnown) where !isKnown {
            let nearest = findings.isFull ? nil : NearestKey.find(pair.key, in: names)
            let hint =
                (pair.value.isNull ? YAMLSlip.colonHint(pair.key) : nil)
                ?? nearest.map { "did you mean \"\($0)\"?" }
                ?? "known here: \(names.joined(separator: ", "))"
            findings.error(
                Place(file: file, line: pair.line, column: pair.column),
                "unknown key \"\(ShownText(pair.key))\"\(whereabouts); \(hint)")
        }
    }
}
