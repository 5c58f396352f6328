/// The last bytes of an input, which choose how it is used. Its beginning remains the peer's data.
struct Choices {
    let input: [UInt8]
    private var rest: [UInt8]

    /// - Parameter count: the number of choices; a shorter input chooses zero.
    init(_ bytes: [UInt8], count: Int) {
        input = Array(bytes.dropLast(count))
        rest = Array(bytes.suffix(count))
    }

    mutating func byte() -> UInt8 { rest.popLast() ?? 0 }
    mutating func flag() -> Bool { byte() & 1 == 1 }
    mutating func one<Choice>(of choices: [Choice]) -> Choice { choices[Int(byte()) % choices.count] }
}

/// The parts of an input between lines `--- WORD`.
/// - Parameter most: the limit on parts; the last one may contain such lines.
func parts(of input: [UInt8], separatedBy word: String, most: Int) -> [[UInt8]] {
    let separator = Array("\n--- \(word)\n".utf8)
    var (parts, start, place) = ([[UInt8]](), 0, 0)
    while parts.count < most - 1, let next = input[place...].firstIndex(of: 0x0A) {
        place = next + 1
        guard input[next...].starts(with: separator) else { continue }
        parts.append(Array(input[start..<next]))
        start = next + separator.count
        place = start
    }
    return parts + [Array(input[start...])]
}

/// Lengths of pieces, drawn from a seed: the same input is always cut in the same way.
struct Cuts {
    private var state: UInt64

    init(seed: UInt8) { state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1 }

    /// 1 for one seed in four, so that input also arrives byte by byte; else up to 64.
    mutating func next() -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return 1 + Int(state % (state & 0xC00 == 0 ? 64 : 7))
    }
}
