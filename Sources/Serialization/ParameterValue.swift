/// A value among the parameters of a request: what JSON can express, with the order of its keys, and sets.
///
///     let parameters: ParameterValue = ["user": ["name": "x", "tags": ["a", "b"]], "page": 2]
public indirect enum ParameterValue: Sendable, Hashable {
    /// A key with its value.
    public struct Pair: Sendable, Hashable {
        /// The key, unique in its dictionary.
        public let key: String
        /// The value.
        public let value: ParameterValue

        /// A key with its value.
        public init(key: String, value: ParameterValue) {
            self.key = key
            self.value = value
        }
    }

    /// A dictionary with unique keys, in the order of sending.
    case dictionary([Pair])
    /// An array, in order.
    case array([ParameterValue])
    /// An unordered set. A query repeats its key for each element; JSON and property lists can't express it.
    case set(Set<ParameterValue>)
    /// A string.
    case string(String)
    /// A number in its original digits, by the grammar of JSON (RFC 8259 section 6).
    case number(String)
    /// A Boolean.
    case bool(Bool)
    /// No value; in a query, a key without `=`.
    case null

    /// Creates a dictionary sorted by key, so that equal parameters give equal bytes.
    public init(sorting dictionary: [String: ParameterValue]) {
        self = .dictionary(
            dictionary.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
                .map { Pair(key: $0.key, value: $0.value) })
    }

    /// The value of a dictionary for that key; nil for anything else.
    public subscript(key: String) -> ParameterValue? {
        guard case .dictionary(let pairs) = self else { return nil }
        return pairs.first { $0.key == key }?.value
    }

    /// An unquoted word: a number if JSON has it so, a boolean, else text. `0755`, more likely a code, is text.
    public init(word: String) {
        switch word {
        case "true", "True", "TRUE": self = .bool(true)
        case "false", "False", "FALSE": self = .bool(false)
        default: self = Self.isNumber(word) ? .number(word) : .string(word)
        }
    }

    /// No parameters at all: no value, or a dictionary without keys.
    var isNone: Bool {
        switch self {
        case .null: true
        case .dictionary(let pairs): pairs.isEmpty
        default: false
        }
    }

    /// The pairs of a dictionary, for formats that have nothing else at their top.
    func pairs(in format: String) throws(RequestSerializationError) -> [Pair] {
        let kind: String
        switch self {
        case .dictionary(let pairs): return pairs
        case .null: return []
        case .array: kind = "an array"
        case .set: kind = "a set"
        case .string: kind = "a text"
        case .number: kind = "a number"
        case .bool: kind = "a truth value"
        }
        throw RequestSerializationError(.inexpressible(InexpressibleValue(name: "", format: format, kind: kind)))
    }

    static func isNumber(_ text: String) -> Bool {
        var rest = text.utf8[...]
        func digits() -> Int {
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            rest = rest[digits.endIndex...]
            return digits.count
        }
        func skip(_ characters: String) -> Bool {
            guard let first = rest.first, characters.utf8.contains(first) else { return false }
            rest.removeFirst()
            return true
        }
        _ = skip("-")
        let isZero = rest.first == UInt8(ascii: "0")
        let count = digits()
        guard count > 0, !isZero || count == 1 else { return false }
        if skip("."), digits() == 0 { return false }
        if skip("eE") {
            _ = skip("+-")
            if digits() == 0 { return false }
        }
        return rest.isEmpty
    }
}

extension ParameterValue: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral
{
    public init(dictionaryLiteral elements: (String, ParameterValue)...) {
        self = .dictionary(elements.map { Pair(key: $0.0, value: $0.1) })
    }

    public init(arrayLiteral elements: ParameterValue...) { self = .array(elements) }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .number("\(value)") }
    public init(floatLiteral value: Double) { self = .number("\(value)") }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(nilLiteral: ()) { self = .null }
}
