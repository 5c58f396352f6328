/// Writes a property list in XML 1.0. Unlike CFPropertyListCreateData, it keeps the order of keys and the digits of
/// reals, and refuses what XML can't contain.
struct PropertyListWriter {
    private static let format = "a property list"
    private var out: [UInt8] = []
    private var path = ValuePath()
    private var depth = 0
    private let limit: Int

    private init(limit: Int) { self.limit = limit }

    /// - Parameter limit: the most bytes; the indentation can make much of little.
    static func write(_ value: ParameterValue, limit: Int = .max) throws(RequestSerializationError) -> [UInt8] {
        var writer = PropertyListWriter(limit: limit)
        writer.out +=
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">

            """.utf8
        try writer.append(value)
        writer.out += "</plist>\n".utf8
        return writer.out
    }

    private mutating func append(_ value: ParameterValue) throws(RequestSerializationError) {
        guard out.count <= limit else { throw RequestSerializationError(.tooLong(limit: limit)) }
        switch value {
        case .dictionary(let pairs) where pairs.isEmpty: line("<dict/>")
        case .dictionary(let pairs): try append(pairs)
        case .array(let values) where values.isEmpty: line("<array/>")
        case .array(let values):
            line("<array>")
            depth += 1
            for value in values {
                path.enterElement()
                try append(value)
                path.leave()
            }
            depth -= 1
            line("</array>")
        case .set: throw path.inexpressible("a set", in: Self.format)
        case .string(let text): line("<string>\(try escaped(text))</string>")
        case .number(let text): line(try number(text))
        case .bool(let value): line(value ? "<true/>" : "<false/>")
        case .null: throw path.inexpressible("null", in: Self.format)
        }
    }

    private mutating func append(_ pairs: [ParameterValue.Pair]) throws(RequestSerializationError) {
        var keys = KeySet()
        line("<dict>")
        depth += 1
        for pair in pairs {
            path.enter(key: pair.key)
            guard keys.insert(pair.key) else { throw path.inexpressible("written twice", in: Self.format) }
            line("<key>\(try escaped(pair.key))</key>")
            try append(pair.value)
            path.leave()
        }
        depth -= 1
        line("</dict>")
    }

    private mutating func line(_ text: String) {
        out += repeatElement(UInt8(ascii: "\t"), count: depth)
        out += text.utf8
        out.append(UInt8(ascii: "\n"))
    }

    /// An integer where it has 64 bits, signed or not, which is what readers take; a real within the range of a double.
    private func number(_ text: String) throws(RequestSerializationError) -> String {
        guard ParameterValue.isNumber(text) else { throw path.inexpressible("not a number", in: Self.format) }
        let isInteger = !text.utf8.contains { ".eE".utf8.contains($0) } && text != "-0"
        if isInteger {
            guard Int64(text) != nil || UInt64(text) != nil else {
                throw path.inexpressible("an integer of more than 64 bits", in: Self.format)
            }
            return "<integer>\(text)</integer>"
        }
        guard let real = Double(text), real.isFinite else {
            throw path.inexpressible("a number beyond the range of a double", in: Self.format)
        }
        return "<real>\(text)</real>"
    }

    /// A carriage return becomes a reference, since XML readers make a line feed of a plain one (section 2.11).
    private func escaped(_ text: String) throws(RequestSerializationError) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\r": escaped += "&#13;"
            case "\t", "\n": escaped.unicodeScalars.append(scalar)
            case "\0"..<" ", "\u{FFFE}", "\u{FFFF}":
                throw path.inexpressible("a text with a character that XML forbids", in: Self.format)
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
