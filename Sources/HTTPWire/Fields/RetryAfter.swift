/// The value of a Retry-After field (RFC 9110 section 10.2.3): seconds, or a date.
package enum RetryAfter {
    /// Seconds to wait; nil if the value is neither. A past date gives 0.
    package static func seconds(_ value: Span<UInt8>, at unixTime: Int64) -> UInt64? {
        var reader = DecimalReader(ByteRange(0, value.count), in: value)
        if let seconds = reader.number() { return reader.isAtEnd ? seconds : nil }
        guard let date = HTTPDate.parse(value) else { return nil }
        return UInt64(max(0, date - unixTime))
    }
}
