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

    /// As in a field.
    package var text: [UInt8] { isWeak ? Array("W/".utf8) + opaque : opaque }

    /// The tags of If-None-Match (RFC 9110 section 13.1.2), but for `*`. Nil if it isn't such a list. A comma may occur
    /// within a tag.
    package static func list(_ value: Span<UInt8>) -> [EntityTag]? {
        let (quote, comma) = (UInt8(ascii: "\""), UInt8(ascii: ","))
        var tags: [EntityTag] = []
        var next = 0
        while true {
            while next < value.count, value[next].isBlank || value[next] == comma { next += 1 }
            if next == value.count { return tags }
            var close = next
            while close < value.count, value[close] != quote { close += 1 }
            close += 1
            while close < value.count, value[close] != quote { close += 1 }
            guard close < value.count, let tag = parse(value.extracting(next..<close + 1)) else { return nil }
            tags.append(tag)
            next = close + 1
            while next < value.count, value[next].isBlank { next += 1 }
            guard next == value.count || value[next] == comma else { return nil }
        }
    }
}

/// Identifies a state of a resource, byte for byte.
package enum StrongValidator {
    /// Seconds between a modification and the response that make a date strong (RFC 9110 section 8.8.2.2, RFC 7232).
    package static let leastAge: Int64 = 60

    /// The If-Range value (RFC 9110 section 13.1.5) for a response; nil if none is reliable. A weak entity tag says
    /// that the bytes may differ, whatever the date.
    /// - Parameter etag: the values of the response's fields.
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
