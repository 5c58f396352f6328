// One idea with HostPatterns.swift, which numbers the patterns that the table finds values by.

/// The entries of the pin file by host, immutable for one generation of the configuration. A lookup reads the host
/// once, from its end, with one probe per dot, and allocates nothing, except for an address. ``HostPattern`` has the
/// precedence.
package struct HostTable<Value: Sendable>: Sendable {
    package struct Entry: Sendable {
        package let pattern: HostPattern
        package let value: Value
    }

    private let patterns: HostPatterns
    /// In the order of their patterns.
    package let values: [Value]

    /// - Parameter values: one for each pattern, in order.
    package init(_ patterns: HostPatterns, _ values: [Value]) {
        precondition(patterns.count == values.count)
        self.patterns = patterns
        self.values = values
    }

    /// The first of equal patterns counts.
    package init(_ list: [(pattern: HostPattern, value: Value)] = []) {
        self = HostPatterns.number(list.map(\.pattern)).table(of: list.map(\.value))
    }

    /// In the order given. Builds the patterns each time: see ``values``.
    package var entries: [Entry] {
        values.enumerated().map { Entry(pattern: patterns.index.pattern(at: $0.offset), value: $0.element) }
    }

    /// The value for a name in any case, with or without trailing dot, or an address without brackets.
    package func value(forHost host: String, port: UInt16) -> Value? {
        guard let place = patterns.index.find(host, port: port) else { return nil }
        return values[place]
    }

    /// The deciding pattern and its value.
    package func entry(forHost host: String, port: UInt16) -> Entry? {
        patterns.index.find(host, port: port).map { Entry(pattern: patterns.index.pattern(at: $0), value: values[$0]) }
    }

    package func mapValues(_ change: (Value) -> Value) -> HostTable {
        HostTable(patterns, values.map(change))
    }
}
