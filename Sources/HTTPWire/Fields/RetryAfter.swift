/// The value of a Retry-After field (RFC 9110 section 10.2.3): seconds, or a date.
package enum RetryAfter {
    /// Seconds from now on; nil if it is neither. A date that is past is now.
    package static func seconds(_ value: Span<UInt8>, at unixTime: Int64) -> UInt64? {
        var reader = DecimalReader(ByteRange(0, value.count), in: value)
        if let seconds = reader.number() { return reader.isAtEnd ? seconds : nil }
        guard let date = HTTPDate.parse(value) else { return nil }
        return UInt64(max(0, date - unixTime))
    }
}
