/// Puts text that came from outside into a line so that it stays within its quotes and its line,
/// and can't steer a terminal. The escapes are those of JSON, in both formats of the log.
package enum EscapedText {
    private static let hexadecimal = Array("0123456789abcdef".utf8)

    /// Appends the text without quotes around it. What is not UTF-8 becomes `\ufffd`.
    package static func append(_ text: Span<UInt8>, to line: inout [UInt8]) {
        var index = 0
        while index < text.count {
            let byte = text[index]
            if byte >= 0x80 {
                index += appendNonASCII(text, index, to: &line)
                continue
            }
            index += 1
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                line.append(UInt8(ascii: "\\"))
                line.append(byte)
            case UInt8(ascii: "\n"): append(escape: UInt8(ascii: "n"), to: &line)
            case UInt8(ascii: "\r"): append(escape: UInt8(ascii: "r"), to: &line)
            case UInt8(ascii: "\t"): append(escape: UInt8(ascii: "t"), to: &line)
            case 0..<0x20, 0x7F: append(code: UInt32(byte), to: &line)
            default: line.append(byte)
            }
        }
    }

    /// True if the text can stand in a text line without quotes: printable ASCII without a space,
    /// a quote, a backslash or `=`, and not empty.
    package static func isBare(_ text: Span<UInt8>) -> Bool {
        for index in text.indices {
            switch text[index] {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "="), 0...0x20, 0x7F...: return false
            default: continue
            }
        }
        return !text.isEmpty
    }

    /// Appends one scalar outside of ASCII, and returns how many bytes it took.
    private static func appendNonASCII(_ text: Span<UInt8>, _ start: Int, to line: inout [UInt8]) -> Int {
        let (scalar, length) = decode(text, start)
        guard let scalar else {
            append(code: 0xFFFD, to: &line)
            return length
        }
        switch scalar {
        // C1 controls, line separators, and what changes the direction of writing.
        case 0x80...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF:
            append(code: scalar, to: &line)
        default:
            for offset in 0..<length { line.append(text[start + offset]) }
        }
        return length
    }

    /// The scalar that begins here and its length in bytes; nil and 1 if it is no UTF-8 (RFC 3629).
    private static func decode(_ text: Span<UInt8>, _ start: Int) -> (UInt32?, Int) {
        let first = text[start]
        let (length, least): (Int, UInt32)
        switch first {
        case 0xC2...0xDF: (length, least) = (2, 0x80)
        case 0xE0...0xEF: (length, least) = (3, 0x800)
        case 0xF0...0xF4: (length, least) = (4, 0x1_0000)
        default: return (nil, 1)
        }
        guard start + length <= text.count else { return (nil, 1) }
        var scalar = UInt32(first) & (0x7F >> UInt32(length))
        for offset in 1..<length {
            let byte = text[start + offset]
            guard byte & 0xC0 == 0x80 else { return (nil, 1) }
            scalar = scalar << 6 | UInt32(byte & 0x3F)
        }
        guard scalar >= least, scalar <= 0x10FFFF, !(0xD800...0xDFFF).contains(scalar) else { return (nil, 1) }
        return (scalar, length)
    }

    private static func append(escape letter: UInt8, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "\\"))
        line.append(letter)
    }

    private static func append(code: UInt32, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "\\"))
        line.append(UInt8(ascii: "u"))
        for shift: UInt32 in [12, 8, 4, 0] { line.append(hexadecimal[Int(code >> shift & 0xF)]) }
    }
}
