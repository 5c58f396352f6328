/// The encoding of one scalar (RFC 3629 section 4).
enum UTF8Sequence {
    /// - Returns: nil if no scalar is encoded there: a stray or missing continuation, an overlong form, a surrogate.
    static func length(in bytes: Span<UInt8>, at offset: Int) -> Int? {
        func continues(_ index: Int, _ range: ClosedRange<UInt8> = 0x80...0xBF) -> Bool {
            offset + index < bytes.count && range.contains(bytes[offset + index])
        }
        switch bytes[offset] {
        case 0...0x7F: return 1
        case 0xC2...0xDF: return continues(1) ? 2 : nil
        case 0xE0: return continues(1, 0xA0...0xBF) && continues(2) ? 3 : nil
        case 0xED: return continues(1, 0x80...0x9F) && continues(2) ? 3 : nil
        case 0xE1...0xEF: return continues(1) && continues(2) ? 3 : nil
        case 0xF0: return continues(1, 0x90...0xBF) && continues(2) && continues(3) ? 4 : nil
        case 0xF1...0xF3: return continues(1) && continues(2) && continues(3) ? 4 : nil
        case 0xF4: return continues(1, 0x80...0x8F) && continues(2) && continues(3) ? 4 : nil
        default: return nil
        }
    }
}
