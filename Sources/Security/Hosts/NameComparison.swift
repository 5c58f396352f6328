extension Span<UInt8> {
    /// Whether this lower-case name is the host's, in any case: hashes can collide on purpose. Compares eight bytes at
    /// a time.
    func spells(_ host: Span<UInt8>) -> Bool {
        guard count == host.count else { return false }
        var index = 0
        while index + 8 <= count {
            guard word(at: index) == lowercase(host.word(at: index)) else { return false }
            index += 8
        }
        while index < count {
            guard self[index] == lowercase(host[index]) else { return false }
            index += 1
        }
        return true
    }

    private func word(at index: Int) -> UInt64 { bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self) }
}

func lowercase(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}

/// Converts eight bytes at once: sums of bytes without their upper bits don't carry over.
private func lowercase(_ word: UInt64) -> UInt64 {
    let low = word & 0x7f7f_7f7f_7f7f_7f7f
    let isFromA = low &+ 0x3f3f_3f3f_3f3f_3f3f
    let isBehindZ = low &+ 0x2525_2525_2525_2525
    return word | (isFromA & ~isBehindZ & ~word & 0x8080_8080_8080_8080) >> 2
}
