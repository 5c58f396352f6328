/// The value of an ETag field (RFC 9110 section 8.8.3).
package struct EntityTag: Sendable, Hashable {
    package let isWeak: Bool
    /// With its quotes, without `W/`.
    package let opaque: [UInt8]

    /// Nil if it isn't one: without quotes, or with a byte in them that doesn't belong there.
    package static func parse(_ value: Span<UInt8>) -> EntityTag? {
        let isWeak = value.count >= 2 && value[0] == UInt8(ascii: "W") && value[1] == UInt8(ascii: "/")
        let range = ByteRange(isWeak ? 2 : 0, value.count)
        let quote = UInt8(ascii: "\"")
        guard range.count >= 2, value[range.start] == quote, value[range.end - 1] == quote else { return nil }
        for offset in range.start + 1..<range.end - 1 {
            guard value[offset] > .space, value[offset] != 0x7F, value[offset] != quote else { return nil }
        }
        return EntityTag(isWeak: isWeak, opaque: range.copy(of: value))
    }
}

/// What tells one state of a resource from another, byte for byte.
package enum StrongValidator {
    /// Seconds by which a modification must be older than the response, so that there can't have been two within the
    /// second that it names (RFC 9110 section 8.8.2.2; the number is RFC 7232's).
    static let leastAge: Int64 = 60

    /// The value for an If-Range field (RFC 9110 section 13.1.5) that stands for what a response holds; nil if
    /// nothing does so reliably.
    ///
    /// With an entity tag, a date counts for nothing: a weak tag says that the bytes may differ.
    /// - Parameters:
    ///   - etag: the values of the response's fields.
    package static func of(etag: [UInt8]?, lastModified: [UInt8]?, date: [UInt8]?) -> [UInt8]? {
        if let etag {
            guard let tag = EntityTag.parse(etag.span), !tag.isWeak else { return nil }
            return tag.opaque
        }
        guard let lastModified, let date, let modified = HTTPDate.parse(lastModified.span),
            let sent = HTTPDate.parse(date.span), sent - modified >= leastAge
        else { return nil }
        return lastModified
    }
}
