/// Keeps outside text within its quotes and line, and from steering a terminal. Escapes as in JSON, in both formats.
package enum EscapedText {
    /// Bytes of output for one byte of text, at most.
    static let longestEscape = 6

    /// Appends the text without quotes around it. Invalid UTF-8 becomes `\ufffd`.
    package static func append(_ text: Span<UInt8>, to line: inout [UInt8]) {
        let start = line.count
        line.append(contentsOf: repeatElement(0, count: text.count * longestEscape))
        var target = line.mutableSpan
        let end = write(text, to: &target, at: start)
        line.removeLast(line.count - end)
    }

    /// Writes into existing bytes, ``longestEscape`` for each of the text's. Returns the place after them.
    static func write(_ text: Span<UInt8>, to line: inout MutableSpan<UInt8>, at start: Int) -> Int {
        var (index, end) = (0, start)
        while index < text.count {
            // Most of what is logged needs no escape: eight bytes at a time.
            while index + 8 <= text.count, let word = plainWord(text, index) {
                var target = line.mutableBytes
                target.storeBytes(of: word, toByteOffset: end, as: UInt64.self)
                (index, end) = (index + 8, end + 8)
            }
            guard index < text.count else { break }
            let byte = text[index]
            if byte >= 0x20, byte < 0x7F, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                line[end] = byte
                index += 1
                end += 1
            } else if byte >= 0x80 {
                index += writeNonASCII(text, index, to: &line, at: &end)
            } else {
                writeEscape(of: byte, to: &line, at: &end)
                index += 1
            }
        }
        return end
    }

    /// Eight bytes of the text, if none needs an escape.
    private static func plainWord(_ text: Span<UInt8>, _ index: Int) -> UInt64? {
        // Unsafe only in name: the load is checked against the span's bounds.
        let word = text.bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
        let ones: UInt64 = 0x0101_0101_0101_0101
        /// Sets high bits if a byte is zero, and none otherwise.
        func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word }
        let isControl = (word &- ones &* 0x20) & ~word
        let isSpecial = zeros(word ^ (ones &* 0x22)) | zeros(word ^ (ones &* 0x5C)) | zeros(word ^ (ones &* 0x7F))
        return (word | isControl | isSpecial) & (ones &* 0x80) == 0 ? word : nil
    }

    private static func writeEscape(of byte: UInt8, to line: inout MutableSpan<UInt8>, at end: inout Int) {
        let letter: UInt8
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): letter = byte
        case UInt8(ascii: "\n"): letter = UInt8(ascii: "n")
        case UInt8(ascii: "\r"): letter = UInt8(ascii: "r")
        case UInt8(ascii: "\t"): letter = UInt8(ascii: "t")
        default: return write(code: UInt32(byte), to: &line, at: &end)
        }
        line[end] = UInt8(ascii: "\\")
        line[end + 1] = letter
        end += 2
    }

    /// Whether the text needs no quotes in a text line: printable ASCII without space, quote, backslash, `=`.
    package static func isBare(_ text: Span<UInt8>) -> Bool {
        for index in text.indices {
            switch text[index] {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "="), 0...0x20, 0x7F...: return false
            default: continue
            }
        }
        return !text.isEmpty
    }

    /// Writes one scalar outside of ASCII, and returns how many bytes of the text it took.
    private static func writeNonASCII(
        _ text: Span<UInt8>, _ start: Int, to line: inout MutableSpan<UInt8>, at end: inout Int
    ) -> Int {
        let (scalar, length) = decode(text, start)
        guard let scalar else {
            write(code: 0xFFFD, to: &line, at: &end)
            return length
        }
        switch scalar {
        // C1 controls, line separators, and direction marks.
        case 0x80...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF:
            write(code: scalar, to: &line, at: &end)
        default:
            for offset in 0..<length { line[end + offset] = text[start + offset] }
            end += length
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

    private static func write(code: UInt32, to line: inout MutableSpan<UInt8>, at end: inout Int) {
        line[end] = UInt8(ascii: "\\")
        line[end + 1] = UInt8(ascii: "u")
        for position in 0..<4 {
            let digit = UInt8(truncatingIfNeeded: code >> UInt32(12 - 4 * position) & 0xF)
            line[end + 2 + position] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
        }
        end += 6
    }
}
