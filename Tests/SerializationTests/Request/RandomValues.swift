import PinproxyTestBodies

@testable import PinproxySerialization

/// Random values for requests.
extension SeededGenerator {
    private static let pieces = [
        "a", "Z", "9", " ", "+", "%", "%41", "&", "=", "[", "]", "[]", "#", "?", "/", "\"", "'", "\\", "<", ">",
        "\u{0}", "\n", "\r",
        "\u{7F}", "é", "e\u{301}", "ß", "日", "\u{FEFF}", "\u{10FFFF}", "👩‍👩‍👧‍👦", "🇦🇹", "\u{1F3FD}", "\u{200D}",
        ";", ",", ":",
        "@", "!", "$", "(", ")", "*",
    ]

    mutating func text(_ pieces: Range<Int> = 0..<12) -> String {
        (0..<Int.random(in: pieces, using: &self)).map { _ in Self.pieces.randomElement(using: &self)! }.joined()
    }

    /// A key without brackets, so that a form is unambiguous.
    mutating func key() -> String {
        let text = text(1..<6).unicodeScalars.filter { $0 != "[" && $0 != "]" }
        return text.isEmpty ? "k" : String(String.UnicodeScalarView(text))
    }

    mutating func pairs(depth: Int) -> [ParameterValue.Pair] {
        var seen: Set<[UInt8]> = []
        return (0..<Int.random(in: 1..<4, using: &self)).compactMap { _ in
            let key = key()
            return seen.insert(Array(key.utf8)).inserted ? .init(key: key, value: value(depth: depth)) : nil
        }
    }

    mutating func value(depth: Int) -> ParameterValue {
        switch Int.random(in: 0..<(depth > 0 ? 8 : 5), using: &self) {
        case 0, 1: .string(text())
        case 2: .number("\(Int.random(in: -1000...1000, using: &self))")
        case 3: .bool(.random(using: &self))
        case 4: .null
        case 5: .dictionary(pairs(depth: depth - 1))
        case 6: .array((0..<Int.random(in: 0..<4, using: &self)).map { _ in value(depth: depth - 1) })
        default: .array([.string(text())])
        }
    }
}
