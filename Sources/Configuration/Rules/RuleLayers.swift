package import PinproxyHTTPWire
internal import PinproxySerialization
package import PinproxySession
internal import PinproxyTLS

/// The rules of one host, laid over one another key by key:
///
/// 1. the built-in defaults,
/// 2. `defaults`, and over it the first of the rules in `defaults` that matches the request,
/// 3. the entry, and over it the first rule of the entry that matches.
///
/// So `defaults` never override an entry, and a rule overrides the keys beside it that hold for all paths. A key is
/// taken whole: `headers` of an entry replaces `headers` of the defaults.
///
/// All combinations are built when the file is read: a request costs one comparison of its path, and no allocation.
///
/// **No spelling gets round a rule.** Servers disagree about what `/a/..%2fb` is. All readings of a path are compared
/// (``PathReadings``). If they don't select the same rules, the path is ambiguous, and the caller refuses the request:
/// no rule could be trusted to hold.
package final class RuleLayers: Sendable {
    /// The rules that match a request, by their indices.
    package struct Choice: Sendable, Hashable {
        package let ofDefaults: Int?
        package let ofEntry: Int?

        package static let none = Choice(ofDefaults: nil, ofEntry: nil)
    }

    package enum Outcome: Sendable, Hashable {
        case decided(Choice)
        case ambiguous(Choice, Choice)
    }

    package let defaults: RuleBlock
    package let entry: RuleBlock
    /// One for each pair of a rule of the defaults, or none, and a rule of the entry, or none.
    private let laid: [ExchangeRules]
    /// Some response may be stored.
    package var stores: Bool { laid.contains { $0.cache != nil } }
    var storesOnDisk: Bool { laid.contains { $0.cache?.rules.store == .disk } }
    /// Some request to the host may go over a cellular link.
    package let mayAllowWWAN: Bool

    /// Nil if nothing is written at all.
    /// - Parameter clients: who may use the entry; nil: everybody. Part of the identity of stored responses.
    package init?(defaults: RuleBlock?, entry: RuleBlock?, clients: EntryClients? = nil) {
        self.defaults = defaults ?? RuleBlock(own: RuleLayer(RuleSource(.defaults)), rules: [])
        self.entry = entry ?? RuleBlock(own: RuleLayer(RuleSource(.entry)), rules: [])
        guard !self.defaults.isEmpty || !self.entry.isEmpty else { return nil }
        let blocks = (self.defaults, self.entry)
        let laid = Self.choices(blocks.0, blocks.1).map { choice in
            let laid = Laid(Self.layers(choice, blocks.0, blocks.1))
            let sources = laid.keys.map { ($0.name, "\($0.source), \($0.place)") }
            return ExchangeRules(
                session: laid.session.rules, request: laid.request.rules, response: laid.response.rules,
                cache: laid.cacheTerms(for: clients), sources: Dictionary(sources) { first, _ in first })
        }
        self.laid = laid
        mayAllowWWAN = laid.contains { $0.session.allowWWAN }
    }

    /// The rules that match a request.
    /// - Parameter readings: of its path, already taken.
    package func choose(_ readings: inout PathReadings, method: Span<UInt8>) -> Outcome {
        guard !defaults.rules.isEmpty || !entry.rules.isEmpty else { return .decided(.none) }
        readings.read(0)
        let first = choose(readings.bytes, method)
        for number in 1..<max(readings.count, 1) {
            readings.read(number)
            let other = choose(readings.bytes, method)
            if other != first { return .ambiguous(first, other) }
        }
        return .decided(first)
    }

    /// Chooses the rules for a path and query, for the command line and tests.
    package func choose(path target: String, method: String) -> Outcome {
        var readings = PathReadings()
        readings.take(target)
        return choose(&readings, method: Array(method.utf8).span)
    }

    private func choose(_ path: [UInt8], _ method: Span<UInt8>) -> Choice {
        Choice(
            ofDefaults: Self.first(defaults.rules, path, method), ofEntry: Self.first(entry.rules, path, method))
    }

    private static func first(_ rules: [PathRule], _ path: [UInt8], _ method: Span<UInt8>) -> Int? {
        for index in rules.indices where rules[index].matches(path: path, method: method) { return index }
        return nil
    }

    package func rules(_ choice: Choice) -> ExchangeRules {
        laid[((choice.ofDefaults ?? -1) + 1) * (entry.rules.count + 1) + (choice.ofEntry ?? -1) + 1]
    }

    /// A possible choice: its layers, the most general first, and the resulting rules.
    package struct Combination: Sendable {
        package let layers: [RuleLayer]
        package let keys: [LaidKey]
        package let rules: ExchangeRules
    }

    package var combinations: [Combination] {
        Self.choices(defaults, entry).map { choice in
            Combination(layers: Self.layers(choice, defaults, entry), keys: keys(choice), rules: rules(choice))
        }
    }

    /// The item of `rules`; nil: the source holds for all paths.
    package func rule(_ source: RuleSource) -> PathRule? {
        source.rule.map { (source.writer == .defaults ? defaults : entry).rules[$0 - 1] }
    }

    /// The written keys, each with its source. All others have their defaults.
    package func keys(_ choice: Choice) -> [LaidKey] { laid(choice).keys }

    /// The chosen rules, the more general first.
    package func chosen(_ choice: Choice) -> [PathRule] {
        [choice.ofDefaults.map { defaults.rules[$0] }, choice.ofEntry.map { entry.rules[$0] }].compactMap(\.self)
    }

    /// Contradictions between layers, each with the place of the key to blame.
    func contradictions() -> [(place: Place, message: String)] {
        Self.choices(defaults, entry).flatMap { choice in
            let (laid, methods) = (laid(choice), methods(choice))
            return [
                laid.request.rules.contradiction(for: methods).flatMap { laid.request.blame($0.key, $0.reason) },
                laid.response.rules.contradiction.flatMap { laid.response.blame($0.key, $0.reason) },
                laid.unaskedCredentials, laid.sharedNothing,
            ].compactMap(\.self)
        }
    }

    /// The request methods that a choice applies to; nil: all.
    private func methods(_ choice: Choice) -> [MethodName]? {
        let lists = chosen(choice).map(\.methods).filter { !$0.isEmpty }
        return lists.first.map { first in first.filter { method in lists.allSatisfy { $0.contains(method) } } }
    }

    private func laid(_ choice: Choice) -> Laid { Laid(Self.layers(choice, defaults, entry)) }

    /// In the order of `laid`.
    private static func choices(_ defaults: RuleBlock, _ entry: RuleBlock) -> [Choice] {
        func each(_ block: RuleBlock) -> [Int?] { [nil] + block.rules.indices.map { $0 } }
        return each(defaults).flatMap { first in each(entry).map { Choice(ofDefaults: first, ofEntry: $0) } }
    }

    private static func layers(_ choice: Choice, _ defaults: RuleBlock, _ entry: RuleBlock) -> [RuleLayer] {
        func each(_ block: RuleBlock, _ rule: Int?) -> [RuleLayer] {
            [block.own] + (rule.map { [block.rules[$0].layer] } ?? [])
        }
        return each(defaults, choice.ofDefaults) + each(entry, choice.ofEntry)
    }
}

/// A key in force, and its source.
package struct LaidKey: Sendable, Hashable {
    /// E.g. `session.timeout`.
    package let name: String
    /// As the file would write it, with secrets masked.
    package let value: String
    package let source: RuleSource
    package let place: Place
    /// It applies to requests and responses, and has no effect where bytes pass untouched.
    package let isOfExchanges: Bool
}

/// Lays layers over one another; nothing else does.
private struct Laid {
    struct Table<Rules: RuleTable> {
        var rules = Rules()
        var origins: [Rules.Key: (source: RuleSource, place: Place)] = [:]

        init(_ layers: [RuleLayer], _ table: (RuleLayer) -> WrittenTable<Rules>) {
            for layer in layers {
                let written = table(layer)
                for (key, place) in written.places {
                    written.copy(key, to: &rules)
                    origins[key] = (layer.source, place)
                }
            }
        }

        func keys(isOfExchanges: (Rules.Key) -> Bool) -> [LaidKey] {
            Rules.Key.allCases.compactMap { key in
                origins[key].map { origin in
                    LaidKey(
                        name: Rules.name.isEmpty ? key.rawValue : "\(Rules.name).\(key.rawValue)",
                        value: rules.text(of: key), source: origin.source,
                        place: origin.place, isOfExchanges: isOfExchanges(key))
                }
            }
        }

        func blame(_ key: Rules.Key, _ reason: String) -> (place: Place, message: String)? {
            origins[key].map { ($0.place, "\(key.rawValue): \(reason)") }
        }
    }

    let session: Table<SessionRules>
    let request: Table<RequestRules>
    let response: Table<ResponseRules>
    let cache: Table<CacheRules>

    /// - Parameter layers: the most general first.
    init(_ layers: [RuleLayer]) {
        session = Table(layers, \.session)
        request = Table(layers, \.request)
        response = Table(layers, \.response)
        cache = Table(layers, \.cache)
    }

    /// Credentials that are never used: every request already sends Authorization.
    var unaskedCredentials: (place: Place, message: String)? {
        guard session.rules.credentials != nil, request.rules.authorization != nil else { return nil }
        return session.blame(
            .credentials,
            """
            request.authorization is sent with every request, so the credentials would never be used; remove one \
            of them
            """
        )
    }

    /// In the order of the contract.
    var keys: [LaidKey] {
        session.keys(isOfExchanges: \.isOfExchanges) + request.keys { _ in true } + response.keys { _ in true }
            + cache.keys { _ in true }
    }

    /// An entry that shares a store it doesn't have.
    var sharedNothing: (place: Place, message: String)? {
        guard cache.rules.isShared, cache.rules.store == .off, cache.origins[.shared]?.source.writer == .entry else {
            return nil
        }
        return cache.blame(.shared, "has no effect with cache: off; also set cache: memory or disk")
    }

    /// Nil: nothing is stored.
    func cacheTerms(for clients: EntryClients?) -> CacheTerms? {
        guard cache.rules.store != .off else { return nil }
        var digest = RunningSHA256()
        let texts =
            keys.flatMap { [$0.name, $0.value] }
            // Texts mask secrets.
            + request.rules.headerEdits.flatMap(\.secretText) + [clients.map { "\($0)" } ?? ""]
        for text in texts {
            let bytes = Array(text.utf8)
            digest.append(Array("\(bytes.count):".utf8).span)
            digest.append(bytes.span)
        }
        return CacheTerms(cache.rules, identity: digest.digest())
    }
}

extension HeaderEdit {
    fileprivate var secretText: [String] {
        switch self {
        case .set(let field), .setIfAbsent(let field): [field.name.description, field.value.text]
        case .remove(let name): [name.description]
        }
    }
}
