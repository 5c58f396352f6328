/// Reads a JSON text in one pass by RFC 8259, and like JSONSerialization beyond: no lone surrogate, no number out of a
/// double's range, nesting of at most ``deepest``. Names may repeat.
///
/// It doesn't recurse: workers have small stacks, and scan bodies too.
struct JSONScanner: ~Escapable {
    /// As in JSONSerialization.
    static let deepest = 512

    private struct Container {
        let isObject: Bool
        /// The start of the current item.
        var start: Int
        /// Before the current item; nil if no item before it is kept.
        var comma: Int?
        var key = ""
        var values: [ParameterValue] = []
        var pairs: [ParameterValue.Pair?] = []
        /// The place of each key, by its bytes as in a KeySet.
        var places: [[UInt8]: Int] = [:]
    }

    private let bytes: Span<UInt8>
    private let makesValue: Bool
    private let removesNulls: Bool
    private var at = 0
    private var stack: [Container] = []
    private var isNull = false
    /// The null members and elements to cut, each with one comma. In order, and apart from each other.
    private(set) var cuts: [Range<Int>] = []
    private var repeated: (key: String, offset: Int)?

    /// - Parameters:
    ///   - text: UTF-8, without a byte order mark.
    ///   - makesValue: with the order of keys and the digits of numbers; the last of a repeated key counts.
    ///   - removesNulls: fill ``cuts``, and leave null members and elements out of the value.
    @_lifetime(copy text)
    init(_ text: Span<UInt8>, makesValue: Bool = false, removesNulls: Bool = false) {
        bytes = text
        self.makesValue = makesValue
        self.removesNulls = removesNulls
    }

    /// - Parameter refusesRepeatedKeys: if a value is made.
    /// - Returns: the value; null unless it is made.
    mutating func scan(refusesRepeatedKeys: Bool = false) throws(BodyDefect) -> ParameterValue {
        skipSpace()
        while true {
            var ended = try begin()
            while let value = ended {
                guard stack.isEmpty else {
                    ended = try end(value)
                    continue
                }
                skipSpace()
                guard at == bytes.count else { throw expected("the end of the text") }
                if refusesRepeatedKeys, let (key, offset) = repeated {
                    throw defect("the key \"\(ShownBytes.text(Array(key.utf8).span))\" is written twice", at: offset)
                }
                return value
            }
        }
    }

    // MARK: Structure

    /// Reads a value. Nil for a container that isn't empty: its first value is next.
    private mutating func begin() throws(BodyDefect) -> ParameterValue? {
        isNull = false
        guard at < bytes.count else { throw expected("a value") }
        let byte = bytes[at]
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["): return try open(isObject: byte == UInt8(ascii: "{"))
        case UInt8(ascii: "\""):
            let text = try string()
            return makesValue ? .string(text) : .null
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            let start = at
            try number()
            return makesValue ? .number(text(from: start)) : .null
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"):
            isNull = true
            return try word("null", .null)
        default: throw expected("a value")
        }
    }

    private mutating func open(isObject: Bool) throws(BodyDefect) -> ParameterValue? {
        guard stack.count < Self.deepest else { throw defect("nested more than \(Self.deepest) deep", at: at) }
        at += 1
        skipSpace()
        if at < bytes.count, bytes[at] == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
            at += 1
            return !makesValue ? .null : isObject ? .dictionary([]) : .array([])
        }
        stack.append(Container(isObject: isObject, start: at))
        if isObject { try name() }
        return nil
    }

    /// Ends an item of the innermost container. Nil: another one is next; else the container has ended too.
    private mutating func end(_ value: ParameterValue) throws(BodyDefect) -> ParameterValue? {
        let last = stack.count - 1
        let isObject = stack[last].isObject
        let isCut = removesNulls && isNull
        let end = at
        skipSpace()
        let bracket = isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
        guard at < bytes.count, bytes[at] == UInt8(ascii: ",") || bytes[at] == bracket else {
            throw expected(isObject ? "\",\" or \"}\"" : "\",\" or \"]\"")
        }
        let isLast = bytes[at] == bracket
        let comma = at
        at += 1
        if !isLast { skipSpace() }
        if isCut {
            cuts.append(stack[last].comma.map { $0..<end } ?? stack[last].start..<(isLast ? end : at))
        } else if makesValue {
            keep(value)
        }
        if isLast {
            isNull = false
            let container = stack.removeLast()
            guard makesValue else { return .null }
            return isObject ? .dictionary(container.pairs.compactMap(\.self)) : .array(container.values)
        }
        if !isCut || stack[last].comma != nil { stack[last].comma = comma }
        stack[last].start = at
        if isObject { try name() }
        return nil
    }

    private mutating func keep(_ value: ParameterValue) {
        let last = stack.count - 1
        guard stack[last].isObject else { return stack[last].values.append(value) }
        let (key, start) = (stack[last].key, stack[last].start)
        if let before = stack[last].places.updateValue(stack[last].pairs.count, forKey: Array(key.utf8)) {
            stack[last].pairs[before] = nil
            if start < repeated?.offset ?? .max { repeated = (key, start) }
        }
        stack[last].pairs.append(ParameterValue.Pair(key: key, value: value))
    }

    private mutating func name() throws(BodyDefect) {
        guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else { throw expected("a name in quotes") }
        let key = try string()
        if makesValue { stack[stack.count - 1].key = key }
        skipSpace()
        guard at < bytes.count, bytes[at] == UInt8(ascii: ":") else { throw expected("\":\"") }
        at += 1
        skipSpace()
    }

    // MARK: Tokens

    private mutating func skipSpace() {
        while at < bytes.count, bytes[at] == 0x20 || bytes[at] == 0x0A || bytes[at] == 0x0D || bytes[at] == 0x09 {
            at += 1
        }
    }

    private mutating func word(_ word: StaticString, _ value: ParameterValue) throws(BodyDefect) -> ParameterValue {
        for index in 0..<word.utf8CodeUnitCount {
            guard at + index < bytes.count, bytes[at + index] == word.utf8Start[index] else {
                throw expected("a value")
            }
        }
        at += word.utf8CodeUnitCount
        return value
    }

    private mutating func number() throws(BodyDefect) {
        let start = at
        var mayOverflow = false
        if bytes[at] == UInt8(ascii: "-") { at += 1 }
        if at < bytes.count, bytes[at] == UInt8(ascii: "0") {
            at += 1
            if at < bytes.count, bytes[at].isDigit {
                throw defect("a number can't begin with 0 and another digit", at: at - 1)
            }
        } else {
            try digits()
        }
        if at < bytes.count, bytes[at] == UInt8(ascii: ".") {
            at += 1
            try digits()
        }
        if at < bytes.count, bytes[at] | 0x20 == UInt8(ascii: "e") {
            at += 1
            mayOverflow = true
            if at < bytes.count, bytes[at] == UInt8(ascii: "+") || bytes[at] == UInt8(ascii: "-") { at += 1 }
            try digits()
        }
        if mayOverflow || at - start > 300, Double(text(from: start))?.isFinite != true {
            throw defect("a number is beyond the range of a double", at: start)
        }
    }

    private mutating func digits() throws(BodyDefect) {
        let start = at
        while at < bytes.count, bytes[at].isDigit { at += 1 }
        if at == start { throw expected("a digit") }
    }

    private func text(from start: Int) -> String {
        var text: [UInt8] = []
        append(from: start, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    private func append(from start: Int, to text: inout [UInt8]) {
        for index in start..<at { text.append(bytes[index]) }
    }

    /// Empty if no value is made.
    private mutating func string() throws(BodyDefect) -> String {
        let start = at
        at += 1
        var run = at
        var text: [UInt8] = []
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "\"") {
                if makesValue { append(from: run, to: &text) }
                at += 1
                return String(decoding: text, as: UTF8.self)
            }
            if byte == UInt8(ascii: "\\") {
                if makesValue { append(from: run, to: &text) }
                let scalar = try escape()
                if makesValue { text += String(scalar).utf8 }
                run = at
            } else if byte < 0x20 {
                throw defect("a string contains a control character, \(shown(at))", at: at)
            } else if byte < 0x80 {
                at += 1
            } else {
                guard let length = UTF8Sequence.length(in: bytes, at: at) else {
                    throw defect("not UTF-8: \(shown(at))", at: at)
                }
                at += length
            }
        }
        throw defect("a string has no end", at: start)
    }

    private mutating func escape() throws(BodyDefect) -> Unicode.Scalar {
        let start = at
        at += 1
        guard at < bytes.count else { throw expected("an escape") }
        let letter = bytes[at]
        at += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(letter)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            let unit = try hexadecimal()
            // Nil for surrogates.
            if let scalar = Unicode.Scalar(unit) { return scalar }
            if unit < 0xDC00, at + 1 < bytes.count, bytes[at] == UInt8(ascii: "\\"), bytes[at + 1] == UInt8(ascii: "u")
            {
                at += 2
                let low = try hexadecimal()
                let pair = 0x10000 + (unit & 0x3FF) << 10 + low & 0x3FF
                if low & 0xFC00 == 0xDC00, let scalar = Unicode.Scalar(pair) { return scalar }
            }
            throw defect("an escape is half of a surrogate pair", at: start)
        default: throw defect("unknown escape \\\(shown(start + 1, quoted: false))", at: start)
        }
    }

    private mutating func hexadecimal() throws(BodyDefect) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard at < bytes.count, let digit = Hexadecimal.digit(bytes[at]) else {
                throw expected("a hexadecimal digit")
            }
            unit = unit << 4 | UInt32(digit)
            at += 1
        }
        return unit
    }

    // MARK: What is wrong

    private func expected(_ what: String) -> BodyDefect { defect("expected \(what), found \(shown(at))", at: at) }

    private func defect(_ explanation: String, at offset: Int) -> BodyDefect {
        BodyDefect(explanation, at: TextPlace(ofByte: offset, in: bytes))
    }

    private func shown(_ offset: Int, quoted: Bool = true) -> String {
        guard offset < bytes.count else { return "the end" }
        guard let length = UTF8Sequence.length(in: bytes, at: offset) else {
            return "byte 0x" + String(bytes[offset], radix: 16, uppercase: true)
        }
        let text = ShownBytes.text(bytes.extracting(offset..<offset + length))
        return quoted ? "\"\(text)\"" : text
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { self >= 0x30 && self <= 0x39 }
}
