internal import PinproxyHTTPWire
internal import PinproxySerialization
internal import PinproxySession

/// Reads what an entry, or `defaults`, writes of `session`, `request`, `response` and `rules`.
struct RuleBlockReader {
    enum Owner {
        case defaults
        case entry(isPinned: Bool)
    }

    static let keys = ["session", "request", "response", "rules"] + CacheRules.Key.allCases.map(\.rawValue)
    /// Rules in one list. All combinations of two lists are held in memory.
    static let mostRules = 100

    let section: Section
    /// The file that the section is in; paths are relative to it.
    let file: String
    let owner: Owner

    func block() -> RuleBlock {
        RuleBlock(own: layer(section, RuleSource(writer)), rules: rules())
    }

    /// Lays what is written over the defaults, and says what doesn't go together.
    /// - Parameter clients: who may use the entry; nil: everybody.
    func layers(over defaults: RuleBlock?, for clients: EntryClients? = nil) -> RuleLayers? {
        let own = block()
        let layers =
            switch owner {
            case .defaults: RuleLayers(defaults: own, entry: nil)
            case .entry: RuleLayers(defaults: defaults, entry: own, clients: clients)
            }
        for (place, message) in layers?.contradictions() ?? [] { section.error(place, message) }
        return layers
    }

    private var writer: RuleSource.Writer {
        switch owner {
        case .defaults: .defaults
        case .entry: .entry
        }
    }

    private func layer(_ section: Section, _ source: RuleSource) -> RuleLayer {
        var layer = RuleLayer(source)
        layer.session = session(section, isForAll: source.rule == nil)
        layer.request = request(section)
        layer.response = response(section)
        layer.cache = cache(section)
        return layer
    }

    private func cache(_ section: Section) -> WrittenTable<CacheRules> {
        let table = TableReader<CacheRules>(in: section)
        table.key(.cache, \.store, .anyCase)
        table.key(.shared, \.isShared, .bool)
        return table.finish()
    }

    private func rules() -> [PathRule] {
        guard let value = section.nonNull("rules") else { return [] }
        guard case .sequence(let list) = value.content else {
            section.error(value, "\"rules\" takes a list of rules (\"- path: …\"), not \(value.kind)")
            return []
        }
        if list.count > Self.mostRules {
            section.error(value, "rules: there are more than \(Self.mostRules)")
            return []
        }
        let rules = list.enumerated().map { rule($1, RuleSource(writer, rule: $0 + 1)) }
        warnOfShadows(rules)
        return rules.compactMap(\.self)
    }

    /// Nil, with an error, if it can't be said which requests it is for.
    private func rule(_ element: YAMLValue, _ source: RuleSource) -> PathRule? {
        let fields = section.element("rules", element)
        defer { fields.finish() }
        guard case .mapping = element.content else {
            if element.isNull {
                section.error(element, "rules: the rule is empty; write path: and its settings")
            }
            return nil
        }
        let path = fields.value("path").map { fields.scalar($0, "path", .pathPattern) }
        let methods = fields.value("methods").map { self.methods(fields, $0) }
        let layer = layer(fields, source)
        if path == nil, methods == nil {
            section.error(
                element, "rules: a rule has a path or methods; settings for every request go next to \"rules\"")
            return nil
        }
        // An invalid value doesn't stand for every path or method.
        if case .some(nil) = path { return nil }
        if case .some(nil) = methods { return nil }
        return PathRule(
            path: path ?? nil, methods: (methods ?? nil) ?? [], layer: layer, place: section.place(of: element))
    }

    private func methods(_ fields: Section, _ value: YAMLValue) -> [MethodName]? {
        guard let list = fields.elements(value, "methods") else { return nil }
        if list.isEmpty {
            fields.error(value, "methods: the list is empty; write the methods, or leave the line out for all of them")
            return nil
        }
        let methods = list.map { fields.scalar($0, "methods", .checked(MethodName.init)) }
        return methods.contains(nil) ? nil : methods.compactMap(\.self)
    }

    private func warnOfShadows(_ rules: [PathRule?]) {
        for (index, later) in rules.enumerated() {
            guard let later else { continue }
            let shadow = rules[..<index].firstIndex { $0?.covers(later) == true }
            guard let shadow, let earlier = rules[shadow] else { continue }
            section.warning(
                later.place,
                "rules: this rule never applies: rule \(shadow + 1) in line \(earlier.place.line ?? 0), for "
                    + "\(earlier.requests), comes first and takes all of its requests")
        }
    }
}
