/// Validates a JSON text in one pass by RFC 8259, and like JSONSerialization beyond: no lone surrogate, no number out
/// of a double's range, nesting of at most ``deepest``. Names may repeat.
struct JSONScanner: ~Escapable {
    /// As in JSONSerialization.
    static let deepest = 512

    /// The first byte that is wrong, and why.
    struct Defect: Error {
        let offset: Int
        let explanation: String
    }

    private struct Container {
        let isObject: Bool
        /// It has a member or element that isn't null.
        var hasKept = false
        /// Of the comma before the current item.
        var comma = 0
        var itemStart = 0
        /// The current item is null, and the first that is kept hasn't come yet: the comma to cut follows.
        var isLeadingNull = false
    }

    private let bytes: Span<UInt8>
    private let findsNulls: Bool
    private var at = 0
    private var stack: [Container] = []
    /// What to cut so that no member and no element is null, each with one comma. In order, apart from each other.
    private(set) var cuts: [Range<Int>] = []

    /// - Parameters:
    ///   - text: UTF-8, without a byte order mark.
    ///   - findsNulls: fill ``cuts``.
    @_lifetime(copy text)
    init(_ text: Span<UInt8>, findsNulls: Bool = false) {
        bytes = text
        self.findsNulls = findsNulls
    }

    mutating func scan() throws(Defect) {
        skipSpace()
        while true {
            if try beginsContainer() { continue }
            if try endsText() { return }
        }
    }

    // MARK: Structure

    /// Reads one value. True for a container, whose first value is next.
    private mutating func beginsContainer() throws(Defect) -> Bool {
        guard at < bytes.count else { throw expected("a value") }
        switch bytes[at] {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            return try open(isObject: bytes[at] == UInt8(ascii: "{"))
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try number()
        case UInt8(ascii: "t"): try word("true")
        case UInt8(ascii: "f"): try word("false")
        case UInt8(ascii: "n"):
            try word("null")
            if findsNulls { endNull() }
            return false
        default: throw expected("a value")
        }
        keepItem()
        return false
    }

    /// - Returns: whether a value is next; else the container is empty and over.
    private mutating func open(isObject: Bool) throws(Defect) -> Bool {
        guard stack.count < Self.deepest else {
            throw Defect(offset: at, explanation: "nested more than \(Self.deepest) deep")
        }
        keepItem()
        at += 1
        skipSpace()
        if at < bytes.count, bytes[at] == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
            at += 1
            return false
        }
        stack.append(Container(isObject: isObject, itemStart: at))
        if isObject { try name() }
        return true
    }

    /// Reads what follows a value: ends of containers, then a comma, or the end.
    private mutating func endsText() throws(Defect) -> Bool {
        while true {
            skipSpace()
            guard let container = stack.last else {
                guard at == bytes.count else { throw expected("the end of the text") }
                return true
            }
            let end = container.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
            guard at < bytes.count, bytes[at] == UInt8(ascii: ",") || bytes[at] == end else {
                throw expected(container.isObject ? "\",\" or \"}\"" : "\",\" or \"]\"")
            }
            let isEnd = bytes[at] == end
            let comma = at
            at += 1
            if isEnd {
                // A leading null without a comma after it.
                if container.isLeadingNull { cut(container.itemStart..<container.itemStart + lengthOfItem(before: comma)) }
                stack.removeLast()
                continue
            }
            skipSpace()
            if container.isLeadingNull { cut(container.itemStart..<at) }
            stack[stack.count - 1].isLeadingNull = false
            stack[stack.count - 1].comma = comma
            stack[stack.count - 1].itemStart = at
            if container.isObject { try name() }
            return false
        }
    }

    private mutating func name() throws(Defect) {
        guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else { throw expected("a name in quotes") }
        try string()
        skipSpace()
        guard at < bytes.count, bytes[at] == UInt8(ascii: ":") else { throw expected("\":\"") }
        at += 1
        skipSpace()
    }

    // MARK: Null values

    private mutating func keepItem() {
        if findsNulls, !stack.isEmpty { stack[stack.count - 1].hasKept = true }
    }

    private mutating func endNull() {
        guard let container = stack.last else { return }
        if container.hasKept {
            cut(container.comma..<at)
        } else {
            stack[stack.count - 1].isLeadingNull = true
        }
    }

    /// Without the white space between the item and the end of its container.
    private func lengthOfItem(before end: Int) -> Int {
        var last = end
        while bytes[last - 1].isJSONSpace { last -= 1 }
        return last - stack[stack.count - 1].itemStart
    }

    private mutating func cut(_ range: Range<Int>) { cuts.append(range) }

    // MARK: Tokens

    private mutating func skipSpace() {
        while at < bytes.count, bytes[at].isJSONSpace { at += 1 }
    }

    private mutating func word(_ word: StaticString) throws(Defect) {
        let start = at
        for index in 0..<word.utf8CodeUnitCount {
            guard at < bytes.count, bytes[at] == word.utf8Start[index] else {
                throw Defect(offset: start, explanation: "expected a value, found \(Self.shown(bytes, start))")
            }
            at += 1
        }
    }

    private mutating func number() throws(Defect) {
        let start = at
        var mayOverflow = false
        if bytes[at] == UInt8(ascii: "-") { at += 1 }
        if at < bytes.count, bytes[at] == UInt8(ascii: "0") {
            at += 1
            if at < bytes.count, bytes[at].isDigit {
                throw Defect(offset: at - 1, explanation: "a number can't begin with 0 and another digit")
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
        if mayOverflow || at - start > 300 { try checkRange(start) }
    }

    private mutating func digits() throws(Defect) {
        let start = at
        while at < bytes.count, bytes[at].isDigit { at += 1 }
        if at == start { throw expected("a digit") }
    }

    private func checkRange(_ start: Int) throws(Defect) {
        var digits: [UInt8] = []
        for index in start..<at { digits.append(bytes[index]) }
        guard let value = Double(String(decoding: digits, as: UTF8.self)), value.isFinite else {
            throw Defect(offset: start, explanation: "a number is beyond the range of a double")
        }
    }

    private mutating func string() throws(Defect) {
        let start = at
        at += 1
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "\"") {
                at += 1
                return
            }
            if byte == UInt8(ascii: "\\") {
                try escape()
            } else if byte < 0x20 {
                throw Defect(offset: at, explanation: "a string contains a control character, \(Self.shown(bytes, at))")
            } else if byte < 0x80 {
                at += 1
            } else {
                guard let length = UTF8Sequence.length(in: bytes, at: at) else {
                    throw Defect(offset: at, explanation: "not UTF-8: \(Self.shown(bytes, at))")
                }
                at += length
            }
        }
        throw Defect(offset: start, explanation: "a string has no end")
    }

    private mutating func escape() throws(Defect) {
        let start = at
        at += 1
        guard at < bytes.count else { throw expected("an escape") }
        switch bytes[at] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            at += 1
        case UInt8(ascii: "u"):
            at += 1
            let unit = try hexadecimal()
            switch unit {
            case 0xD800...0xDBFF:
                guard at + 1 < bytes.count, bytes[at] == UInt8(ascii: "\\"), bytes[at + 1] == UInt8(ascii: "u") else {
                    throw Defect(offset: start, explanation: "an escape is half of a surrogate pair")
                }
                at += 2
                guard case 0xDC00...0xDFFF = try hexadecimal() else {
                    throw Defect(offset: start, explanation: "an escape is half of a surrogate pair")
                }
            case 0xDC00...0xDFFF: throw Defect(offset: start, explanation: "an escape is half of a surrogate pair")
            default: break
            }
        default: throw Defect(offset: start, explanation: "there is no escape \\\(Self.shown(bytes, at, quoted: false))")
        }
    }

    private mutating func hexadecimal() throws(Defect) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard at < bytes.count, let digit = bytes[at].hexadecimalDigit else { throw expected("a hexadecimal digit") }
            unit = unit << 4 | UInt32(digit)
            at += 1
        }
        return unit
    }

    // MARK: What is wrong

    private func expected(_ what: String) -> Defect {
        Defect(offset: at, explanation: "expected \(what), found \(Self.shown(bytes, at))")
    }

    private static func shown(_ bytes: Span<UInt8>, _ offset: Int, quoted: Bool = true) -> String {
        guard offset < bytes.count else { return "the end" }
        guard let length = UTF8Sequence.length(in: bytes, at: offset) else {
            return "byte 0x" + String(bytes[offset], radix: 16, uppercase: true)
        }
        let text = ShownBytes.text(bytes.extracting(offset..<offset + length))
        return quoted ? "\"\(text)\"" : text
    }
}

extension UInt8 {
    var isJSONSpace: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }

    fileprivate var isDigit: Bool { self >= 0x30 && self <= 0x39 }

    fileprivate var hexadecimalDigit: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x37
        case 0x61...0x66: self - 0x57
        default: nil
        }
    }
}
