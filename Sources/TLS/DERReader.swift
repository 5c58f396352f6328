/// Takes DER values (X.690) off the front of a region, one after the other. Only the short tags and the
/// lengths of certificates: anything else reads as the end.
struct DERReader {
    private let bytes: UnsafePointer<UInt8>
    private var rest: Range<Int>

    init(_ region: UnsafeBufferPointer<UInt8>) {
        // The empty region is never dereferenced.
        bytes = region.baseAddress ?? UnsafePointer(bitPattern: 1).unsafelyUnwrapped
        rest = 0..<region.count
    }

    struct Value {
        let tag: UInt8
        /// Tag, length and contents.
        let whole: UnsafeBufferPointer<UInt8>
        let contents: UnsafeBufferPointer<UInt8>
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// The next value if it has the tag; nil leaves the reader where it was.
    mutating func take(_ tag: UInt8) -> Value? {
        guard rest.count >= 2, bytes[rest.lowerBound] == tag else { return nil }
        var start = rest.lowerBound + 2
        var length = Int(bytes[rest.lowerBound + 1])
        if length >= 0x80 {
            let count = length - 0x80
            guard (1...3).contains(count), rest.upperBound - start >= count else { return nil }
            length = 0
            for _ in 0..<count {
                length = length << 8 | Int(bytes[start])
                start += 1
            }
        }
        guard rest.upperBound - start >= length else { return nil }
        let end = start + length
        let value = Value(
            tag: tag, whole: UnsafeBufferPointer(start: bytes + rest.lowerBound, count: end - rest.lowerBound),
            contents: UnsafeBufferPointer(start: bytes + start, count: length))
        rest = end..<rest.upperBound
        return value
    }
}
