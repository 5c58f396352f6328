package import PinproxyHTTPWire
package import PinproxySerialization
package import PinproxySession

/// The origin of a key: the defaults or an entry.
package struct RuleSource: Sendable, Hashable, CustomStringConvertible {
    package enum Writer: String, Sendable {
        case defaults, entry
    }

    package let writer: Writer
    /// The number of the item of `rules`, from 1; nil: the key holds for all paths.
    package let rule: Int?

    package init(_ writer: Writer, rule: Int? = nil) {
        self.writer = writer
        self.rule = rule
    }

    package var description: String {
        guard let rule else { return writer.rawValue }
        return "rule \(rule) of the \(writer.rawValue)"
    }
}

/// The keys in one place of `session`, `request` and `response`.
package struct RuleLayer: Sendable {
    package let source: RuleSource
    package var session = WrittenTable<SessionRules>()
    package var request = WrittenTable<RequestRules>()
    package var response = WrittenTable<ResponseRules>()
    package var cache = WrittenTable<CacheRules>()

    package init(_ source: RuleSource) { self.source = source }

    package var isEmpty: Bool {
        session.places.isEmpty && request.places.isEmpty && response.places.isEmpty && cache.places.isEmpty
    }
}

package struct PathRule: Sendable {
    /// Nil: every path.
    package let path: PathPattern?
    /// Empty: every method.
    package let methods: [MethodName]
    package let layer: RuleLayer
    /// Where it begins.
    package let place: Place

    package func matches(path reading: [UInt8], method: Span<UInt8>) -> Bool {
        guard methods.isEmpty || methods.contains(where: { $0.equals(method) }) else { return false }
        return path?.matches(reading) ?? true
    }

    /// Whether it takes every request that the other would.
    func covers(_ other: PathRule) -> Bool {
        guard methods.isEmpty || !other.methods.isEmpty && other.methods.allSatisfy(methods.contains) else {
            return false
        }
        guard let path else { return true }
        // Without a pattern a rule matches even `*`, the target of OPTIONS, which no pattern does.
        return other.path.map(path.covers) ?? false
    }

    /// For people, e.g. `/v1/** (GET, HEAD)`.
    package var requests: String {
        let path = path?.description ?? "every path"
        return methods.isEmpty ? path : "\(path) (\(methods.map(\.description).joined(separator: ", ")))"
    }
}

/// All that an entry writes of rules, or `defaults` for all entries.
package struct RuleBlock: Sendable {
    package let own: RuleLayer
    /// The first that matches is laid over `own`.
    package let rules: [PathRule]

    package var isEmpty: Bool { own.isEmpty && rules.isEmpty }
}
