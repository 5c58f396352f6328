import PinproxyHTTPWire

/// A client's own conditions, answered from what is stored (RFC 9110 section 13.2.2, RFC 9111 section 4.3.2).
package enum ClientCondition {
    /// Whether the client has these bytes already: 304. Conditions count only for a response that would be a success
    /// without them (RFC 9110 section 13.2.1).
    package static func isMet(_ request: CacheRequest, by response: CachedTraits) -> Bool {
        guard request.method == .get || request.method == .head, 200..<300 ~= response.status else { return false }
        if let tags = request.ifNoneMatch {
            if tags == [UInt8(ascii: "*")] { return true }
            guard let own = response.etag, let tags = EntityTag.list(tags.span) else { return false }
            // Weak comparison (RFC 9110 section 8.8.3.2).
            return tags.contains { $0.opaque == own.opaque }
        }
        // RFC 9111 section 4.3.2: Date where Last-Modified is missing.
        guard let since = request.ifModifiedSince, let modified = response.lastModified ?? response.date
        else { return false }
        return modified <= since
    }

    /// Whether Range applies (RFC 9110 section 13.1.5): strong comparison, or the very date, if it is a strong
    /// validator.
    package static func allowsPart(_ request: CacheRequest, of response: CachedTraits) -> Bool {
        guard let value = request.ifRange else { return true }
        if let tag = EntityTag.parse(value.span) {
            return !tag.isWeak && response.strongTag && tag.opaque == response.etag?.opaque
        }
        guard let date = HTTPDate.parse(value.span), let modified = response.lastModified, let sent = response.date
        else { return false }
        return date == modified && sent - modified >= StrongValidator.leastAge
    }
}
