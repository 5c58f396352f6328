package import Serialization
package import Session

/// The rooms' own types for what `session`, `request` and `response` say, as tables of keys, so that layers
/// are laid over one another in one place (``RuleLayers``) without a word about any key.
package protocol RuleTable: Sendable, Equatable {
    associatedtype Key: RawRepresentable<String>, CaseIterable, Hashable, Sendable

    /// As the file calls it.
    static var name: String { get }

    /// What holds where nothing is written.
    init()

    mutating func take(_ key: Key, from other: Self)

    /// The value of a key for people, as the file would have it; secrets are masked.
    func text(of key: Key) -> String
}

extension SessionRules: RuleTable {
    package static var name: String { "session" }
}

extension RequestRules: RuleTable {
    package static var name: String { "request" }
}

extension ResponseRules: RuleTable {
    package static var name: String { "response" }
}

/// A table as one layer writes it: some of its keys, each with its place.
package struct WrittenTable<Rules: RuleTable>: Sendable {
    /// Keys that aren't written have their defaults.
    package private(set) var values = Rules()
    package private(set) var places: [Rules.Key: Place] = [:]

    mutating func write<Value>(_ key: Rules.Key, _ field: WritableKeyPath<Rules, Value>, _ value: Value, at place: Place) {
        values[keyPath: field] = value
        places[key] = place
    }

    /// The key isn't written, or says what holds without it.
    func isDefault(_ key: Rules.Key) -> Bool {
        var copy = Rules()
        copy.take(key, from: values)
        return copy == Rules()
    }
}
