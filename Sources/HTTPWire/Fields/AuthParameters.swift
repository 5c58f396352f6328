/// The parameters of a challenge or of credentials (auth-param, RFC 9110 section 11.2), in their order.
package struct AuthParameters: Sendable, Hashable {
    /// More than any scheme defines.
    package static let most = 32

    /// Names in lower case, values without quotes and escapes.
    private var pairs: [(name: String, value: [UInt8])] = []

    package init() {}

    package var count: Int { pairs.count }

    package subscript(_ name: String) -> [UInt8]? { pairs.first { $0.name == name }?.value }

    /// Bytes of all names and values.
    package var length: Int { pairs.reduce(0) { $0 + $1.name.utf8.count + $1.value.count } }

    /// The parameters that a field consists of, as Authentication-Info does (RFC 7615 section 3); nil if it doesn't.
    package static func parse(_ value: Span<UInt8>) -> AuthParameters? {
        var scanner = ElementScanner(value)
        var parameters = AuthParameters()
        while true {
            scanner.skipSeparators(in: value)
            if scanner.isAtEnd { return parameters }
            guard let pair = scanner.parameter(in: value), parameters.add(pair) else { return nil }
            guard scanner.isAtElementEnd(in: value) else { return nil }
        }
    }

    /// False if the name is there already (RFC 9110 section 11.2: once), or there are too many.
    mutating func add(_ pair: (name: String, value: [UInt8])) -> Bool {
        guard pairs.count < Self.most, self[pair.name] == nil else { return false }
        pairs.append(pair)
        return true
    }

    package static func == (left: AuthParameters, right: AuthParameters) -> Bool {
        left.pairs.elementsEqual(right.pairs) { $0 == $1 }
    }

    package func hash(into hasher: inout Hasher) {
        for pair in pairs {
            hasher.combine(pair.name)
            hasher.combine(pair.value)
        }
    }
}
