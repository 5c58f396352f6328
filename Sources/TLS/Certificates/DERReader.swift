/// A cursor over DER (X.690): one-byte tags, shortest definite lengths. Anything else ends the reading, since a BER
/// parser might read it differently.
struct DERReader {
    private var offset: Int
    private let end: Int

    /// - Parameter range: of the span passed to each call.
    init(_ range: Range<Int>) {
        offset = range.lowerBound
        end = range.upperBound
    }

    enum Tag {
        static let boolean: UInt8 = 0x01
        static let integer: UInt8 = 0x02
        static let bitString: UInt8 = 0x03
        static let octetString: UInt8 = 0x04
        static let identifier: UInt8 = 0x06
        static let enumerated: UInt8 = 0x0A
        static let sequence: UInt8 = 0x30
        /// `[number]`, constructed.
        static func context(_ number: UInt8) -> UInt8 { 0xA0 | number }
    }

    var isAtEnd: Bool { offset == end }
    var range: Range<Int> { offset..<end }

    /// The next value; nil at the end, or if malformed.
    mutating func next(in bytes: Span<UInt8>) -> (tag: UInt8, contents: DERReader)? {
        guard end <= bytes.count, end - offset >= 2 else { return nil }
        let tag = bytes[offset]
        guard tag & 0x1F != 0x1F else { return nil }
        var start = offset + 2
        var length = Int(bytes[offset + 1])
        if length >= 0x80 {
            let width = length - 0x80
            guard 1...4 ~= width, width <= end - start else { return nil }
            length = 0
            for _ in 0..<width {
                length = length << 8 | Int(bytes[start])
                start += 1
            }
            guard length >= 0x80, width == 1 || length >> (8 * (width - 1)) != 0 else { return nil }
        }
        guard length <= end - start else { return nil }
        offset = start + length
        return (tag, DERReader(start..<offset))
    }

    /// The next value's contents; nil for another tag.
    mutating func next(_ tag: UInt8, in bytes: Span<UInt8>) -> DERReader? {
        guard let value = next(in: bytes), value.tag == tag else { return nil }
        return value.contents
    }
}
