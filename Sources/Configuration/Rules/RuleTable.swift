package import PinproxySerialization
package import PinproxySession

/// The modules' own types for `session`, `request` and `response`, as tables of keys. So ``RuleLayers`` can lay layers
/// over one another without knowing any key.
package protocol RuleTable: Sendable, Equatable {
    associatedtype Key: RawRepresentable<String>, CaseIterable, Hashable, Sendable

    /// The key of its mapping; empty: its keys are in the entry itself.
    static var name: String { get }

    /// Creates the defaults.
    init()

    /// The value of a key in human-readable form, as the file would write it; secrets are masked.
    func text(of key: Key) -> String
}

extension SessionRules: RuleTable {
    package static var name: String { "session" }
}

extension RequestRules: RuleTable {
    package static var name: String { "request" }
}

extension CacheRules: RuleTable {
    /// Its keys are beside `session`, `request` and `response`.
    package static var name: String { "" }
}

extension ResponseRules: RuleTable {
    package static var name: String { "response" }
}

typealias RuleField<Rules: RuleTable, Value> = WritableKeyPath<Rules, Value> & Sendable

/// A table as one layer writes it: some of its keys, each with its place.
package struct WrittenTable<Rules: RuleTable>: Sendable {
    /// Keys that aren't written have their defaults.
    package private(set) var values = Rules()
    package private(set) var places: [Rules.Key: Place] = [:]

    private var copies: [Rules.Key: @Sendable (Rules, inout Rules) -> Void] = [:]

    mutating func write<Value: Sendable>(
        _ key: Rules.Key, _ field: any RuleField<Rules, Value>, _ value: Value, at place: Place
    ) {
        values[keyPath: field] = value
        copies[key] = { $1[keyPath: field] = $0[keyPath: field] }
        places[key] = place
    }

    /// A key that isn't written is left alone.
    func copy(_ key: Rules.Key, to rules: inout Rules) { copies[key]?(values, &rules) }

    /// Whether the key is absent, or has its default value.
    func isDefault(_ key: Rules.Key) -> Bool {
        var copy = Rules()
        self.copy(key, to: &copy)
        return copy == Rules()
    }
}
