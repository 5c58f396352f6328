/// The response serializer rules of an exchange (`response` in pins.yaml), with the defaults.
package struct ResponseRules: Sendable, Hashable {
    package enum Key: String, Sendable, CaseIterable {
        case status
        case contentTypes = "content_types"
        case serializer
        case removeNullValues = "remove_null_values"
        case maxBody = "max_body"
        case oversize, enforcement
    }

    package enum Serializer: String, Sendable, CaseIterable {
        /// Any body.
        case http
        case json, xml
        case propertyList = "property-list"
        case image
    }

    package enum Oversize: String, Sendable, CaseIterable {
        case refuse, pass
    }

    package enum Enforcement: String, Sendable, CaseIterable {
        case enforce
        /// Invalid responses are logged and forwarded.
        case report
    }

    /// Nil: as the serializer has it.
    package var status: [StatusRange]?
    /// Nil: as the serializer has them.
    package var contentTypes: [MediaRange]?
    /// Asked in order; the first that accepts decides. Never empty.
    package var serializers: [Serializer] = [.http]
    package var removeNullValues = false
    package var maxBody: Int?
    package var oversize = Oversize.refuse
    package var enforcement = Enforcement.enforce

    package init() {}

    package var contradiction: (key: Key, reason: String)? {
        guard removeNullValues, !serializers.contains(.json) else { return nil }
        let list = serializers.map(\.rawValue).joined(separator: ", ")
        return (.removeNullValues, "null values are removed from JSON, and here serializer is \(list)")
    }
}
