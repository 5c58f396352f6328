/// Writes compact JSON (RFC 8259); JSONSerialization would lose the order of keys and digits of numbers.
struct JSONWriter {
    private var out: [UInt8] = []
    private var path = ValuePath()
    private let limit: Int

    private init(limit: Int) { self.limit = limit }

    /// - Parameter limit: the most bytes; a property list refers to one long text as often as it likes.
    static func write(_ value: ParameterValue, limit: Int = .max) throws(RequestSerializationError) -> [UInt8] {
        var writer = JSONWriter(limit: limit)
        try writer.append(value)
        return writer.out
    }

    private mutating func append(_ value: ParameterValue) throws(RequestSerializationError) {
        guard out.count <= limit else { throw RequestSerializationError(.tooLong(limit: limit)) }
        switch value {
        case .dictionary(let pairs): try append(pairs)
        case .array(let values):
            out.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                path.enterElement()
                try append(value)
                path.leave()
            }
            out.append(UInt8(ascii: "]"))
        case .set: throw path.inexpressible("a set", in: "JSON")
        case .string(let text): append(quoted: text)
        case .number(let text):
            guard ParameterValue.isNumber(text) else { throw path.inexpressible("not a number", in: "JSON") }
            out += text.utf8
        case .bool(let value): out += (value ? "true" : "false").utf8
        case .null: out += "null".utf8
        }
    }

    private mutating func append(_ pairs: [ParameterValue.Pair]) throws(RequestSerializationError) {
        var keys = KeySet()
        out.append(UInt8(ascii: "{"))
        for (index, pair) in pairs.enumerated() {
            path.enter(key: pair.key)
            guard keys.insert(pair.key) else { throw path.inexpressible("written twice", in: "JSON") }
            if index > 0 { out.append(UInt8(ascii: ",")) }
            append(quoted: pair.key)
            out.append(UInt8(ascii: ":"))
            try append(pair.value)
            path.leave()
        }
        out.append(UInt8(ascii: "}"))
    }

    private mutating func append(quoted text: String) {
        out.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
            case 0x08: out += #"\b"#.utf8
            case 0x09: out += #"\t"#.utf8
            case 0x0A: out += #"\n"#.utf8
            case 0x0C: out += #"\f"#.utf8
            case 0x0D: out += #"\r"#.utf8
            case 0..<0x20:
                out += #"\u00"#.utf8
                out += (byte < 0x10 ? "0" : "").utf8
                out += String(byte, radix: 16).utf8
            default: out.append(byte)
            }
        }
        out.append(UInt8(ascii: "\""))
    }
}
