/// The text of a file, in which single characters can be replaced by marks, so that libyaml reads
/// what it would otherwise refuse. A mark takes one column as its character did, so places stay
/// true; `restored` puts the characters back.
///
/// Marked are the colons of `::1` in `[127.0.0.0/8, ::1]`, which is YAML 1.2 but too new for
/// libyaml, and the first letter of a key that is written twice, to find out about the rest.
struct MarkedText {
    struct Defect: Error, Equatable {
        var line: Int
        var column: Int
        var message: String
    }

    /// Supplementary Private Use Area-B; a file that uses these itself is refused.
    private static let reserved: ClosedRange<UInt32> = 0x10F000...0x10FFFF
    private static let colon: Unicode.Scalar = "\u{10F000}"
    private static let firstDuplicate: UInt32 = 0x10F100

    private var bytes: [UInt8]
    private let hasMarkedColons: Bool
    /// The letters that were replaced by the marks `firstDuplicate`, and so on.
    private var letters: [Unicode.Scalar] = []

    var string: String { String(decoding: bytes, as: UTF8.self) }
    /// How many keys are marked.
    var duplicates: Int { letters.count }

    static func decode(_ bytes: [UInt8]) -> Result<MarkedText, Defect> {
        if bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE]) {
            return .failure(Defect(line: 1, column: 1, message: "the file is UTF-16; save it as UTF-8"))
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

    private init(bytes: [UInt8], hasMarkedColons: Bool) {
        self.bytes = bytes
        self.hasMarkedColons = hasMarkedColons
    }

    private static func firstDefect(_ bytes: ArraySlice<UInt8>) -> Defect? {
        var parser = UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        var (line, column) = (1, 1)
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .emptyInput: return nil
            case .error:
                return Defect(line: line, column: column, message: "the file is not UTF-8 here")
            case .valid(let encoded):
                let scalar = UTF8.decode(encoded)
                if reserved.contains(scalar.value) || scalar.value == 0 {
                    let code = String(scalar.value, radix: 16, uppercase: true)
                    return Defect(line: line, column: column, message: "the character U+\(code) is not allowed")
                }
                if scalar == "\n" { (line, column) = (line + 1, 1) } else { column += 1 }
            }
        }
    }

    /// Marks the key that begins at this place. False if it isn't a plain word.
    mutating func markDuplicate(line: Int, column: Int) -> Bool {
        guard let start = offset(ofLine: line) else { return false }
        var index = start
        var columnsLeft = column - 1
        while columnsLeft > 0, index < bytes.count {
            index += 1
            while index < bytes.count, bytes[index] & 0xC0 == 0x80 { index += 1 }
            columnsLeft -= 1
        }
        guard index < bytes.count, let mark = Unicode.Scalar(Self.firstDuplicate + UInt32(letters.count)) else {
            return false
        }
        let letter = Unicode.Scalar(bytes[index])
        guard letter.isASCII, letter.properties.isAlphabetic else { return false }
        letters.append(letter)
        bytes.replaceSubrange(index...index, with: Array(String(mark).utf8))
        return true
    }

    /// A scalar as it was written.
    func restored(_ text: String) -> String {
        guard hasMarkedColons, text.unicodeScalars.contains(Self.colon) else { return text }
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { scalars.append(scalar == Self.colon ? ":" : scalar) }
        return String(scalars)
    }

    /// A key as it was written.
    func restoredKey(_ text: String) -> String {
        guard !letters.isEmpty, let first = text.unicodeScalars.first, first.value >= Self.firstDuplicate,
            first.value < Self.firstDuplicate + UInt32(letters.count)
        else { return restored(text) }
        var scalars = text.unicodeScalars
        scalars.removeFirst()
        return restored(String(letters[Int(first.value - Self.firstDuplicate)]) + String(scalars))
    }

    /// One line of the text, as it was written, without its end. Empty beyond the last.
    func line(_ number: Int) -> String {
        guard let start = offset(ofLine: number) else { return "" }
        let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
        return restored(String(decoding: bytes[start..<end], as: UTF8.self))
    }

    /// The place of a character, counted as Swift counts them (Yams tells no more).
    func mark(atCharacter offset: Int) -> (line: Int, column: Int) {
        var (line, column) = (1, 1)
        for character in string.prefix(offset) {
            if character.isNewline {
                (line, column) = (line + 1, 1)
            } else {
                column += character.unicodeScalars.count
            }
        }
        return (line, column)
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
