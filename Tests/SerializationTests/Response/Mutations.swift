@testable import Serialization

extension [UInt8] {
    /// Some bytes flipped, replaced, inserted, removed, repeated, or the rest cut off.
    func mutated(by random: inout SeededGenerator) -> [UInt8] {
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
                if Bool.random(using: &random) { copy.removeSubrange(at...) } else { copy[at] = [0, 0x7F, 0x80, 0xFF].randomElement(using: &random)! }
            }
        }
        return copy
    }
}

/// What a judge throws.
func caught(_ judge: () throws(BodyDefect) -> Void) -> BodyDefect? {
    do throws(BodyDefect) {
        try judge()
        return nil
    } catch {
        return error
    }
}
