// One idea with HostPatterns.swift: it numbers the patterns, and the table finds values by these numbers.

/// The entries of the pin file by host, immutable for one generation of the configuration.
///
/// A lookup reads the host once, from its end, and asks once for the suffix at each dot, whatever the number of
/// entries. It allocates nothing, except for an address. The rules of precedence are those of ``HostPattern``.
package struct HostTable<Value: Sendable>: Sendable {
    package struct Entry: Sendable {
        package let pattern: HostPattern
        package let value: Value
    }

    private let patterns: HostPatterns
    /// In the order of their patterns.
    package let values: [Value]

    /// - Parameter values: one for each of the patterns, in their order.
    package init(_ patterns: HostPatterns, _ values: [Value]) {
        precondition(patterns.count == values.count)
        self.patterns = patterns
        self.values = values
    }

    /// Of equal patterns the first holds the place.
    package init(_ list: [(pattern: HostPattern, value: Value)] = []) {
        self = HostPatterns.number(list.map(\.pattern)).table(of: list.map(\.value))
    }

    /// In the order in which they were given. Their patterns are made anew each time: see ``values``.
    package var entries: [Entry] {
        values.enumerated().map { Entry(pattern: patterns.index.pattern(at: $0.offset), value: $0.element) }
    }

    /// The value for a host; a name in any case, with or without its trailing dot, or an address without brackets.
    package func value(forHost host: String, port: UInt16) -> Value? {
        guard let place = patterns.index.find(host, port: port) else { return nil }
        return values[place]
    }

    /// The pattern that decides for a host, and its value, or `nil` when none speaks for it.
    package func entry(forHost host: String, port: UInt16) -> Entry? {
        patterns.index.find(host, port: port).map { Entry(pattern: patterns.index.pattern(at: $0), value: values[$0]) }
    }

    package func mapValues(_ change: (Value) -> Value) -> HostTable {
        HostTable(patterns, values.map(change))
    }
}
