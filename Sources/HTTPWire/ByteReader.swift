/// A cursor over a part of a buffer; every step says whether there was enough.
struct ByteReader {
    private var lower: Int
    private let upper: Int

    init(lower: Int, upper: Int) {
        self.lower = lower
        self.upper = upper
    }

    var count: Int { upper - lower }
    var isAtEnd: Bool { lower == upper }
    var range: ByteRange { ByteRange(lower, upper) }

    mutating func skip(_ bytes: Int) -> Bool {
        guard bytes <= count else { return false }
        lower += bytes
        return true
    }

    mutating func take(_ bytes: Int) -> ByteRange? {
        guard bytes <= count else { return nil }
        defer { lower += bytes }
        return ByteRange(lower, lower + bytes)
    }

    mutating func number(bytes width: Int, in bytes: Span<UInt8>) -> Int? {
        guard width <= count else { return nil }
        var value = 0
        for offset in lower..<lower + width { value = value << 8 | Int(bytes[offset]) }
        lower += width
        return value
    }

    /// A vector with its length in front of it (RFC 8446 section 3.4).
    mutating func vector(lengthBytes: Int, in bytes: Span<UInt8>) -> ByteReader? {
        guard let length = number(bytes: lengthBytes, in: bytes), length <= count else { return nil }
        defer { lower += length }
        return ByteReader(lower: lower, upper: lower + length)
    }
}

extension ByteRange {
    func copy(of bytes: Span<UInt8>) -> [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(count)
        for offset in offsets { copy.append(bytes[offset]) }
        return copy
    }
}
