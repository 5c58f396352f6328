/// Random values that are the same in every run (SplitMix64).
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }
}

extension [UInt8] {
    /// With some bytes flipped, replaced, inserted, removed or repeated, or truncated.
    package func mutated(by random: inout SeededGenerator) -> [UInt8] {
        var copy = self
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            guard !copy.isEmpty else { return copy }
            let at = Int.random(in: 0..<copy.count, using: &random)
            switch UInt8.random(in: 0..<6, using: &random) {
            case 0: copy[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1: copy[at] = UInt8.random(in: 0...255, using: &random)
            case 2: copy.insert(UInt8.random(in: 0...255, using: &random), at: at)
            case 3: copy.remove(at: at)
            case 4:
                let end = Swift.min(at + Int.random(in: 1...16, using: &random), copy.count)
                copy.insert(contentsOf: copy[at..<end], at: Int.random(in: 0...copy.count, using: &random))
            default:
                if Bool.random(using: &random) {
                    copy.removeSubrange(at...)
                } else {
                    copy[at] = [0, 0x7F, 0x80, 0xFF].randomElement(using: &random)!
                }
            }
        }
        return copy
    }
}
