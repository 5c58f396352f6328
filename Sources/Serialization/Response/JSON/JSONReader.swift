/// Reads JSON with the order of its keys and the digits of its numbers. It finds wrong what ``JSONResponseSerializer``
/// does, and in a request also a repeated key: two services would read it differently.
struct JSONReader: ~Escapable {
    /// What becomes of a key that is in an object already.
    enum Repetition { case refused, lastCounts }

    /// - Parameter body: that was found to be JSON; its grammar isn't looked at again.
    static func value(of body: [UInt8], repetition: Repetition) throws(BodyDefect) -> ParameterValue {
        let text = JSONEncoding(of: body).utf8(of: body).text
        var reader = JSONReader(text.span, repetition)
        return try reader.value()
    }

    private let bytes: Span<UInt8>
    private var at = 0

    private let repetition: Repetition

    @_lifetime(copy text)
    private init(_ text: Span<UInt8>, _ repetition: Repetition) {
        bytes = text
        self.repetition = repetition
    }

    private mutating func value() throws(BodyDefect) -> ParameterValue {
        skipSpace()
        guard at < bytes.count else { throw BodyDefect("there is no value") }
        switch bytes[at] {
        case UInt8(ascii: "{"): return .dictionary(try pairs())
        case UInt8(ascii: "["): return .array(try elements())
        case UInt8(ascii: "\""): return .string(string())
        case UInt8(ascii: "t"): at += 4; return .bool(true)
        case UInt8(ascii: "f"): at += 5; return .bool(false)
        case UInt8(ascii: "n"): at += 4; return .null
        default: return .number(number())
        }
    }

    private mutating func pairs() throws(BodyDefect) -> [ParameterValue.Pair] {
        var pairs: [ParameterValue.Pair?] = []
        var places: [[UInt8]: Int] = [:]
        while next(ends: UInt8(ascii: "}")) {
            let start = at
            let key = string()
            // By its bytes, as in a KeySet.
            let before = places.updateValue(pairs.count, forKey: Array(key.utf8))
            guard before == nil || repetition == .lastCounts else {
                let name = ShownBytes.text(Array(key.utf8).span)
                throw BodyDefect("the key \"\(name)\" is written twice", at: TextPlace(ofByte: start, in: bytes))
            }
            skipSpace()
            at += 1  // :
            if let before { pairs[before] = nil }
            pairs.append(ParameterValue.Pair(key: key, value: try value()))
        }
        return pairs.compactMap(\.self)
    }

    private mutating func elements() throws(BodyDefect) -> [ParameterValue] {
        var values: [ParameterValue] = []
        while next(ends: UInt8(ascii: "]")) { values.append(try value()) }
        return values
    }

    /// Goes past the opening bracket or the comma, to the next item if there is one.
    private mutating func next(ends end: UInt8) -> Bool {
        skipSpace()
        if at < bytes.count, bytes[at] != end { at += 1 }
        skipSpace()
        guard at < bytes.count, bytes[at] != end else {
            at += 1
            return false
        }
        return true
    }

    private mutating func skipSpace() {
        while at < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[at]) { at += 1 }
    }

    private mutating func number() -> String {
        var digits: [UInt8] = []
        while at < bytes.count, (0x30...0x39).contains(bytes[at]) || "+-.eE".utf8.contains(bytes[at]) {
            digits.append(bytes[at])
            at += 1
        }
        return String(decoding: digits, as: UTF8.self)
    }

    private mutating func string() -> String {
        at += 1
        var text: [UInt8] = []
        while bytes[at] != UInt8(ascii: "\"") {
            if bytes[at] == UInt8(ascii: "\\") {
                at += 1
                unescape(into: &text)
            } else {
                text.append(bytes[at])
                at += 1
            }
        }
        at += 1
        return String(decoding: text, as: UTF8.self)
    }

    private mutating func unescape(into text: inout [UInt8]) {
        let letter = bytes[at]
        at += 1
        switch letter {
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var unit = UInt32(codeUnit())
            if unit & 0xFC00 == 0xD800 {
                at += 2  // \u
                unit = 0x10000 + (unit & 0x3FF) << 10 + UInt32(codeUnit()) & 0x3FF
            }
            text += String(Unicode.Scalar(unit) ?? "\u{FFFD}").utf8
        default: text.append(letter)
        }
    }

    private mutating func codeUnit() -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            unit = unit << 4 | UInt16(Hexadecimal.digit(bytes[at]) ?? 0)
            at += 1
        }
        return unit
    }
}
