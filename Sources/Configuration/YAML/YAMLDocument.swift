internal import PinproxyHTTPWire

/// Turns the bytes of a file into one YAMLValue, or says why not, in one pass over libyaml's events. Bounded for any
/// input: the depth of nesting is, and what aliases expand to is counted.
struct YAMLDocument: ~Copyable {
    /// More values than any real file has with its aliases followed: 100,000 hosts have about 700,000.
    static let valueLimit = 2_000_000
    /// Lists and mappings within each other.
    static let depthLimit = 256

    private let file: String
    private let findings: Findings
    private let text: MarkedText
    private var events: YAMLEvents
    private var values = 0
    private var anchors: [String: (value: YAMLValue, count: Int)] = [:]

    /// The root of the file; nil if it holds nothing, or after an error, which is among the findings.
    static func compose(_ bytes: [UInt8], file: String, findings: Findings) -> YAMLValue? {
        switch MarkedText.decode(bytes) {
        case .failure(let defect):
            findings.error(Place(file: file, line: defect.line, column: defect.column), defect.message)
            return nil
        case .success(let text):
            return text.withBytes { bytes in
                do throws(YAMLSyntaxError) {
                    var document = YAMLDocument(try YAMLEvents(bytes), text, file: file, findings: findings)
                    return try document.root()
                } catch {
                    let (place, message) = error.explained(in: text)
                    findings.error(Place(file: file, line: place?.line, column: place?.column), message)
                    return nil
                }
            }
        }
    }

    private init(_ events: consuming YAMLEvents, _ text: MarkedText, file: String, findings: Findings) {
        self.events = events
        self.text = text
        self.file = file
        self.findings = findings
    }

    private mutating func root() throws(YAMLSyntaxError) -> YAMLValue? {
        _ = try events.next()  // the stream's start
        guard case .documentStart = try events.next().event else { return nil }
        let (first, mark) = try events.next()
        guard let root = try value(first, mark, depth: 0) else { return nil }
        _ = try events.next()  // the document's end
        let (after, place) = try events.next()
        guard case .streamEnd = after else {
            throw .structure(
                problem: "but found another document", at: place,
                context: ("expected a single document in the stream", line: 1))
        }
        return root
    }

    /// The value that begins with an event; nil (with an error) where reading must stop.
    private mutating func value(
        _ event: YAMLEvents.Event, _ mark: YAMLEvents.Mark, depth: Int
    ) throws(YAMLSyntaxError) -> YAMLValue? {
        let before = values
        let value: YAMLValue
        let anchor: String?
        guard count(1, at: mark) else { return nil }
        switch event {
        case .scalar(let scalar):
            if scalar.isSet { noSet(mark) }
            value = self.value(of: scalar, mark)
            anchor = scalar.anchor
        case .sequenceStart(let name, let isSet):
            if isSet { noSet(mark) }
            guard let list = try list(at: mark, depth: depth + 1) else { return nil }
            value = YAMLValue(content: .sequence(list), line: mark.line, column: mark.column)
            anchor = name
        case .mappingStart(let name, true):
            guard let members = try members(at: mark, depth: depth + 1) else { return nil }
            value = YAMLValue(content: .set(members), line: mark.line, column: mark.column)
            anchor = name
        case .mappingStart(let name, false):
            guard let pairs = try pairs(at: mark, depth: depth + 1) else { return nil }
            value = YAMLValue(content: .mapping(pairs), line: mark.line, column: mark.column)
            anchor = name
        case .alias(let name):
            // Known once it is whole: nothing can hold itself.
            guard let known = anchors[name] else {
                throw .structure(problem: "found undefined alias", at: mark, context: nil)
            }
            return count(known.count - 1, at: mark) ? known.value : nil
        case .streamStart, .streamEnd, .documentStart, .documentEnd, .sequenceEnd, .mappingEnd:
            throw .structure(problem: "did not find a value", at: mark, context: nil)
        }
        if let anchor { anchors[anchor] = (value, values - before) }
        return value
    }

    private mutating func count(_ more: Int, at mark: YAMLEvents.Mark) -> Bool {
        values += more
        if values <= Self.valueLimit { return true }
        findings.error(place(mark), "its aliases expand to more than \(Self.valueLimit) values")
        return false
    }

    private func isWithinDepth(_ depth: Int, _ mark: YAMLEvents.Mark) -> Bool {
        if depth <= Self.depthLimit { return true }
        findings.error(place(mark), "lists and mappings are nested more than \(Self.depthLimit) deep")
        return false
    }

    private func value(of scalar: YAMLEvents.Scalar, _ mark: YAMLEvents.Mark) -> YAMLValue {
        let isNull = scalar.isPlain && ["", "~", "null", "Null", "NULL"].contains(scalar.text)
        return YAMLValue(
            content: isNull ? .null : .scalar(text.restored(scalar.text)), isWord: scalar.isPlain && !scalar.hasTag,
            line: mark.line, column: mark.column)
    }

    private mutating func list(at start: YAMLEvents.Mark, depth: Int) throws(YAMLSyntaxError) -> [YAMLValue]? {
        guard isWithinDepth(depth, start) else { return nil }
        var list: [YAMLValue] = []
        while true {
            let (event, mark) = try events.next()
            if case .sequenceEnd = event { return list }
            guard let element = try value(event, mark, depth: depth) else { return nil }
            list.append(element)
        }
    }

    private mutating func pairs(at start: YAMLEvents.Mark, depth: Int) throws(YAMLSyntaxError) -> [YAMLPair]? {
        guard isWithinDepth(depth, start) else { return nil }
        var mapping = YAMLMapping()
        while true {
            let (event, mark) = try events.next()
            if case .mappingEnd = event { return mapping.merged }
            let key = try value(event, mark, depth: depth)
            let (next, place) = try events.next()
            guard let key, let value = try value(next, place, depth: depth) else { return nil }
            guard case .scalar(let scalar) = event else {
                findings.error(self.place(mark), "a key must be a word, not \(key.kind)")
                continue
            }
            let name = text.restored(scalar.text)
            let pair = YAMLPair(key: name, line: mark.line, column: mark.column, value: value)
            switch mapping.add(pair, merges: scalar.isPlain && name == "<<") {
            case .added: break
            case .duplicate(let first):
                findings.error(self.place(mark), "key \"\(ShownText(name))\" is already written in line \(first)")
            case .notMergeable:
                findings.error(self.place(mark), "\"<<\" takes a mapping or a list of mappings, e.g. <<: *name")
            }
        }
    }

    /// The members of a set: keys with null values (the type `set` of YAML 1.1).
    private mutating func members(at start: YAMLEvents.Mark, depth: Int) throws(YAMLSyntaxError) -> [YAMLValue]? {
        guard isWithinDepth(depth, start) else { return nil }
        var members: [YAMLValue] = []
        var lines: [String: Int] = [:]
        while true {
            let (event, mark) = try events.next()
            if case .mappingEnd = event { return members }
            let member = try value(event, mark, depth: depth)
            let (next, place) = try events.next()
            guard let member, let value = try value(next, place, depth: depth) else { return nil }
            guard case .scalar(let scalar) = event else {
                findings.error(self.place(mark), "a member of a set must be a word, not \(member.kind)")
                continue
            }
            guard value.isNull else {
                findings.error(
                    self.place(place),
                    "the members of a set have no values; leave out \(value.kind), or write a mapping without !!set")
                continue
            }
            if let first = lines.updateValue(mark.line, forKey: scalar.text) {
                let name = ShownText(scalar.text)
                findings.error(self.place(mark), "\"\(name)\" is already in the set, in line \(first)")
                continue
            }
            members.append(member)
        }
    }

    /// Reports `!!set` in front of a value that isn't a mapping.
    private func noSet(_ mark: YAMLEvents.Mark) { findings.error(place(mark), "a set is written as !!set {a, b}") }

    private func place(_ mark: YAMLEvents.Mark) -> Place { Place(file: file, line: mark.line, column: mark.column) }
}
