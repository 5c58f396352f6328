// HTTPWire: HTTP/1.1 heads, body framing, authorities and the ClientHello as ranges over received bytes. Pure.

/// A half-open range of offsets from the first byte of the parsed buffer, which may move. 32 bits suffice for a head.
package struct ByteRange: Sendable, Hashable {
    package var lower: UInt32
    package var upper: UInt32

    @inlinable
    package init(_ lower: Int, _ upper: Int) {
        self.lower = UInt32(truncatingIfNeeded: lower)
        self.upper = UInt32(truncatingIfNeeded: upper)
    }

    @inlinable package static var empty: ByteRange { ByteRange(0, 0) }
    @inlinable package var count: Int { isEmpty ? 0 : Int(upper - lower) }
    @inlinable package var isEmpty: Bool { upper <= lower }
    @inlinable package var start: Int { Int(lower) }
    @inlinable package var end: Int { Int(upper) }
    /// For `Span.extracting(_:)`.
    @inlinable package var offsets: Range<Int> { isEmpty ? start..<start : start..<end }

    /// The text of the range, for logs and errors only: it allocates. Invalid UTF-8 is repaired.
    package func text(in bytes: Span<UInt8>) -> String {
        var copy: [UInt8] = []
        copy.reserveCapacity(count)
        for offset in offsets { copy.append(bytes[offset]) }
        return String(decoding: copy, as: UTF8.self)
    }
}

extension Span<UInt8> {
    package var array: [UInt8] { unsafe withUnsafeBufferPointer { unsafe Array($0) } }

    /// Whether the range holds exactly `lowercase`, in either case of ASCII.
    package func equals(_ range: ByteRange, ignoringCase lowercase: String) -> Bool {
        let expected = lowercase.utf8
        guard range.count == expected.count else { return false }
        var offset = range.start
        for byte in expected {
            if self[offset].lowercased != byte { return false }
            offset += 1
        }
        return true
    }

    /// Eight bytes as a little-endian word. All must be within the span.
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        // Unsafe only in name: the callers check the bounds.
        unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self).littleEndian
    }

    /// The offset of the first byte that a field can't hold (`UInt8.isFieldText`), or `end`; eight bytes at a time.
    func endOfFieldText(from start: Int, to end: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var offset = start
        while offset < end {
            while offset + 8 <= Swift.min(end, count) {
                let word = self.word(at: offset)
                let isDelete = word ^ (ones &* 0x7F)
                // The classic tests for a byte below n and for a zero byte: the lowest mark is exact.
                let marks =
                    (((word &- ones &* 0x20) & ~word) | ((isDelete &- ones) & ~isDelete)) & (ones &* 0x80)
                if marks != 0 {
                    offset += marks.trailingZeroBitCount / 8
                    break
                }
                offset += 8
            }
            guard offset < end, self[offset].isFieldText else { return offset }
            offset += 1
        }
        return offset
    }

    /// The range of a number without leading zeros: some recipients would read octal. The last digit stays.
    func withoutLeadingZeros(_ range: ByteRange) -> ByteRange {
        var lower = range.start
        while lower + 1 < range.end, self[lower] == UInt8(ascii: "0"), self[lower + 1].hexValue != nil { lower += 1 }
        return ByteRange(lower, range.end)
    }

    /// The number of a Content-Length field as it is written to the next hop: once, without leading zeros.
    func lengthAsWritten(_ value: ByteRange) -> ByteRange { withoutLeadingZeros(trimmed(firstElement(of: value))) }

    /// Up to the first comma.
    func firstElement(of list: ByteRange) -> ByteRange {
        for offset in list.offsets where self[offset] == UInt8(ascii: ",") { return ByteRange(list.start, offset) }
        return list
    }

    /// The range without spaces and tabs at both ends (OWS, RFC 9110 section 5.6.3).
    package func trimmed(_ range: ByteRange) -> ByteRange {
        var lower = range.start
        var upper = range.end
        while lower < upper, self[lower].isBlank { lower += 1 }
        while upper > lower, self[upper - 1].isBlank { upper -= 1 }
        return ByteRange(lower, upper)
    }
}

/// The elements of a comma-separated list (RFC 9110 section 5.6.1) without quoted strings; empty ones are skipped.
struct ListElements {
    private var next: Int
    private let end: Int

    init(_ value: ByteRange) {
        next = value.start
        end = value.end
    }

    mutating func next(in bytes: Span<UInt8>) -> ByteRange? {
        while next < end {
            let start = next
            while next < end, bytes[next] != UInt8(ascii: ",") { next += 1 }
            let element = bytes.trimmed(ByteRange(start, next))
            next += 1
            if !element.isEmpty { return element }
        }
        return nil
    }
}
