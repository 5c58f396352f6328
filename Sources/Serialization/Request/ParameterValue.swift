/// A value among the parameters of a request: what JSON can express, with the order of its keys.
public indirect enum ParameterValue: Sendable, Hashable {
    public struct Pair: Sendable, Hashable {
        public let key: String
        public let value: ParameterValue

        public init(key: String, value: ParameterValue) {
            self.key = key
            self.value = value
        }
    }

    /// In order; no key twice.
    case dictionary([Pair])
    case array([ParameterValue])
    case string(String)
    /// As it was written, in the grammar of JSON (RFC 8259 section 6), so that no digit is lost.
    case number(String)
    case bool(Bool)
    case null

    /// A word without quotes: a number if JSON has it so, a truth value, else a text. `0755` and `.5` are
    /// texts: what looks like a number and is none to JSON is more often a code than a quantity.
    public init(word: String) {
        switch word {
        case "true", "True", "TRUE": self = .bool(true)
        case "false", "False", "FALSE": self = .bool(false)
        default: self = Self.isNumber(word) ? .number(word) : .string(word)
        }
    }

    private static func isNumber(_ text: String) -> Bool {
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
