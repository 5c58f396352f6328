/// Scans the text before libyaml does. It refuses keys that are not words, with a clear error where
/// libyaml's wouldn't, and finds the colons that begin a value in brackets (`[::1]`), see MarkedText.
///
/// It knows only quotes, comments and brackets of YAML.
struct KeyShapes {
    /// The indices of the colons to mark, ascending; or the place of a key that is not a word.
    static func scan(_ bytes: ArraySlice<UInt8>) -> Result<[Int], TextDefect> {
        var scan = KeyShapes(bytes)
        do {
            try scan.run()
            return .success(scan.colons)
        } catch {
            return .failure(error)
        }
    }

    private let bytes: ArraySlice<UInt8>
    private var index: Int
    private var depth = 0
    private var colons: [Int] = []
    private var isTokenStart = true

    private init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        index = bytes.startIndex
    }

    private func byte(_ position: Int) -> UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    private func isBlank(_ position: Int) -> Bool {
        switch byte(position) {
        case nil, UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): true
        default: false
        }
    }

    private mutating func run() throws(TextDefect) {
        while let current = byte(index) {
            switch current {
            case UInt8(ascii: "\n"):
                isTokenStart = true
                index += 1
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"):
                index += 1
            case UInt8(ascii: "#") where index == bytes.startIndex || isBlank(index - 1):
                skip { $0 != UInt8(ascii: "\n") }
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                if isTokenStart { skipQuoted(current) } else { index += 1 }
                isTokenStart = false
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                if isTokenStart || depth > 0 {
                    depth += 1
                    isTokenStart = true
                }
                index += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                index += 1
                if depth > 0 {
                    depth -= 1
                    try refuseKey(endingAt: index, "a key must be a word, not a list or a mapping")
                }
                isTokenStart = false
            case UInt8(ascii: ","):
                if depth > 0 { isTokenStart = true }
                index += 1
            case UInt8(ascii: "-") where isTokenStart && isBlank(index + 1):
                index += 1
            case UInt8(ascii: "?") where isTokenStart && isBlank(index + 1):
                throw defect(at: index, "a key must be a word; \"? \" is not understood here")
            case UInt8(ascii: "*") where isTokenStart:
                skip { !" \t\r\n,[]{}:".utf8.contains($0) }
                try refuseKey(endingAt: index, "a key must be a word, not an alias")
                isTokenStart = false
            case UInt8(ascii: "&") where isTokenStart, UInt8(ascii: "!") where isTokenStart:
                // An anchor or a tag: what it belongs to is still to come.
                skip { !" \t\r\n,[]{}".utf8.contains($0) }
            case UInt8(ascii: ":"):
                scanColons()
            default:
                isTokenStart = false
                index += 1
            }
        }
    }

    private mutating func scanColons() {
        let start = index
        skip { $0 == UInt8(ascii: ":") }
        if depth > 0, isTokenStart, index - start > 1 {
            colons += start..<index
            isTokenStart = false
        } else {
            isTokenStart = isBlank(index) || (isTokenStart && depth > 0)
        }
    }

    private mutating func skip(while condition: (UInt8) -> Bool) {
        while let current = byte(index), condition(current) { index += 1 }
    }

    private mutating func skipQuoted(_ quote: UInt8) {
        index += 1
        while let current = byte(index), current != quote {
            index += current == UInt8(ascii: "\\") && quote == UInt8(ascii: "\"") ? 2 : 1
        }
        index = min(index + 1, bytes.endIndex)
    }

    /// The text that ends here is a key if a colon follows on the line (and, outside of brackets, a blank after that).
    private func refuseKey(endingAt end: Int, _ message: String) throws(TextDefect) {
        var next = end
        while byte(next) == UInt8(ascii: " ") || byte(next) == UInt8(ascii: "\t") { next += 1 }
        guard byte(next) == UInt8(ascii: ":"), depth > 0 || isBlank(next + 1) else { return }
        let isAddress = byte(end - 1) == UInt8(ascii: "]") && next == end && !isBlank(next + 1)
        throw defect(
            at: next,
            isAddress ? "an IPv6 address in brackets must be quoted, e.g. \"[::1]:7467\"" : message)
    }

    private func defect(at position: Int, _ message: String) -> TextDefect {
        var (line, column) = (1, 1)
        for byte in bytes[..<position] {
            if byte == UInt8(ascii: "\n") {
                (line, column) = (line + 1, 1)
            } else if byte & 0xC0 != 0x80 {
                column += 1
            }
        }
        return TextDefect(line: line, column: column, message: message)
    }
}

/// Why a file can't be read as YAML, and where; line and column from 1.
struct TextDefect: Error, Equatable {
    var line: Int
    var column: Int
    var message: String
}
