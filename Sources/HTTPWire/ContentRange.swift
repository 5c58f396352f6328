/// The value of a Content-Range field in bytes (RFC 9110 section 14.4).
package enum ContentRange: Sendable, Hashable {
    /// The body is these bytes, the last one included. `complete`: of the whole; nil: not known.
    case bytes(ClosedRange<UInt64>, complete: UInt64?)
    /// No requested byte exists (416).
    case unsatisfied(complete: UInt64)

    /// Nil for other units, and for impossible ranges: an end before the start or past the whole.
    package static func parse(_ value: Span<UInt8>) -> ContentRange? {
        let unit = 5
        guard value.count > unit, value.equals(ByteRange(0, unit), ignoringCase: "bytes"), value[unit].isBlank
        else { return nil }
        var reader = DecimalReader(ByteRange(unit, value.count), in: value)
        reader.skipBlanks()
        if reader.take(UInt8(ascii: "*")) {
            guard reader.take(UInt8(ascii: "/")), let complete = reader.number(), reader.isAtEnd else { return nil }
            return .unsatisfied(complete: complete)
        }
        guard let first = reader.number(), reader.take(UInt8(ascii: "-")), let last = reader.number(), last >= first,
            reader.take(UInt8(ascii: "/"))
        else { return nil }
        if reader.take(UInt8(ascii: "*")) { return reader.isAtEnd ? .bytes(first...last, complete: nil) : nil }
        guard let complete = reader.number(), reader.isAtEnd, complete > last else { return nil }
        return .bytes(first...last, complete: complete)
    }
}

struct DecimalReader: ~Escapable {
    private let bytes: Span<UInt8>
    private var next: Int
    private let end: Int

    @_lifetime(copy bytes)
    init(_ range: ByteRange, in bytes: Span<UInt8>) {
        self.bytes = bytes
        next = range.start
        end = range.end
    }

    var isAtEnd: Bool { next == end }

    mutating func skipBlanks() {
        while next < end, bytes[next].isBlank { next += 1 }
    }

    mutating func take(_ byte: UInt8) -> Bool {
        guard next < end, bytes[next] == byte else { return false }
        next += 1
        return true
    }

    /// Decimal digits, as many as there are; nil without any, and past 63 bits, a common limit.
    mutating func number() -> UInt64? {
        let start = next
        var number: UInt64 = 0
        while next < end, bytes[next].isDigit {
            let (product, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(bytes[next] & 0x0F))
            guard !overflow, !carry, sum <= UInt64(Int64.max) else { return nil }
            number = sum
            next += 1
        }
        return next > start ? number : nil
    }

    mutating func digits(_ count: Int) -> Int? {
        guard end - next >= count else { return nil }
        var number = 0
        for _ in 0..<count {
            guard bytes[next].isDigit else { return nil }
            number = number * 10 + Int(bytes[next] & 0x0F)
            next += 1
        }
        return number
    }

    /// Letters, in lower case, as many as there are.
    mutating func word() -> String {
        let start = next
        while next < end, bytes[next].isLetter { next += 1 }
        return ByteRange(start, next).text(in: bytes).lowercased()
    }
}
