/// The text of a file. Marks replace characters that libyaml would refuse; each takes one column, so that places stay
/// true, and `restored` puts the characters back.
///
/// Marked are the colons of `::1` in `[127.0.0.0/8, ::1]`, which is YAML 1.2 but too new for libyaml.
struct MarkedText {
    /// Supplementary Private Use Area-B; a file that uses these itself is refused.
    private static let reserved: ClosedRange<UInt32> = 0x10F000...0x10FFFF
    private static let colon: Unicode.Scalar = "\u{10F000}"

    private let bytes: [UInt8]
    private let hasMarkedColons: Bool

    func withBytes<Result>(_ read: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        bytes.withUnsafeBufferPointer(read)
    }

    static func decode(_ bytes: [UInt8]) -> Result<MarkedText, TextDefect> {
        if bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE]) {
            return .failure(TextDefect(line: 1, column: 1, message: "the file is UTF-16; save it as UTF-8"))
        }
        let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes[3...] : bytes[...]
        if let defect = firstDefect(bytes) { return .failure(defect) }
        switch KeyShapes.scan(bytes) {
        case .failure(let defect): return .failure(defect)
        case .success(let colons):
            guard !colons.isEmpty else { return .success(MarkedText(bytes: Array(bytes), hasMarkedColons: false)) }
            var marked: [UInt8] = []
            marked.reserveCapacity(bytes.count + 3 * colons.count)
            var copied = bytes.startIndex
            for index in colons {
                marked += bytes[copied..<index]
                marked += Array(String(colon).utf8)
                copied = index + 1
            }
            marked += bytes[copied...]
            return .success(MarkedText(bytes: marked, hasMarkedColons: true))
        }
    }

    private static func firstDefect(_ bytes: ArraySlice<UInt8>) -> TextDefect? {
        // Nearly all files: valid, without zero bytes, and without the first byte of reserved characters.
        if !bytes.contains(0), !bytes.contains(0xF4), String(validating: bytes, as: UTF8.self) != nil { return nil }
        var parser = UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        var (line, column) = (1, 1)
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .emptyInput: return nil
            case .error:
                return TextDefect(line: line, column: column, message: "the file is not UTF-8 here")
            case .valid(let encoded):
                let scalar = UTF8.decode(encoded)
                if reserved.contains(scalar.value) || scalar.value == 0 {
                    let code = String(scalar.value, radix: 16, uppercase: true)
                    return TextDefect(line: line, column: column, message: "the character U+\(code) is not allowed")
                }
                if scalar == "\n" { (line, column) = (line + 1, 1) } else { column += 1 }
            }
        }
    }

    func restored(_ text: String) -> String {
        guard hasMarkedColons, text.unicodeScalars.contains(Self.colon) else { return text }
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { scalars.append(scalar == Self.colon ? ":" : scalar) }
        return String(scalars)
    }

    /// One line of the original text, without its end. Empty beyond the last.
    func line(_ number: Int) -> String {
        guard let start = offset(ofLine: number) else { return "" }
        let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
        return restored(String(decoding: bytes[start..<end], as: UTF8.self))
    }

    /// The place of a byte, as libyaml counts lines and columns.
    func mark(atByte offset: Int) -> YAMLEvents.Mark {
        var mark = (line: 1, column: 1)
        var last: Unicode.Scalar?
        for scalar in String(decoding: bytes.prefix(offset), as: UTF8.self).unicodeScalars {
            switch scalar {
            case "\n" where last == "\r": break
            case "\n", "\r", "\u{85}", "\u{2028}", "\u{2029}": mark = (mark.line + 1, 1)
            default: mark.column += 1
            }
            last = scalar
        }
        return mark
    }

    private func offset(ofLine number: Int) -> Int? {
        var start = 0
        for _ in 1..<max(number, 1) {
            guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
            start = end + 1
        }
        return start
    }
}
