package import PinproxyHTTPWire

/// Properties of a request for a cache.
package struct CacheRequest: Sendable, Equatable {
    package let method: Method
    package private(set) var directives = CacheDirectives()
    package private(set) var hasCredentials = false
    package private(set) var part = WantedPart.whole
    /// The values of If-Range and If-None-Match, several joined; nil: no such field.
    package private(set) var ifRange: [UInt8]?
    package private(set) var ifNoneMatch: [UInt8]?
    /// Unix seconds. Nil as well if it isn't one date, which is ignored (RFC 9110 section 13.1.3).
    package private(set) var ifModifiedSince: Int64?
    /// If-Match or If-Unmodified-Since: only the origin knows.
    package private(set) var asksForState = false
    /// The response may depend on it, which no key holds: search services read queries from the body of a GET.
    package private(set) var hasContent = false

    package init(_ request: borrowing RequestView) {
        method = request.head.method
        part = request.head.wantedPart
        hasContent = !request.head.bodyLength.isEmpty
        var (pragma, dates) = (CacheDirectives(), 0)
        for field in request.head.fields {
            let value = request.bytes.extracting(field.value.offsets)
            switch field.id {
            case .cacheControl: directives.add(value)
            case .pragma: pragma.add(value)
            case .authorization: hasCredentials = true
            case .ifRange: ifRange = Self.joined(ifRange, value)
            case .ifNoneMatch: ifNoneMatch = Self.joined(ifNoneMatch, value)
            case .ifModifiedSince:
                dates += 1
                ifModifiedSince = dates == 1 ? HTTPDate.parse(value) : nil
            case .ifMatch, .ifUnmodifiedSince: asksForState = true
            default: break
            }
        }
        // RFC 9111 section 5.4.
        if !directives.isPresent, pragma.flags.contains(.noCache) { directives.flags.insert(.noCache) }
    }

    private static func joined(_ known: [UInt8]?, _ value: Span<UInt8>) -> [UInt8] {
        known.map { $0 + Array(", ".utf8) + value.array } ?? value.array
    }
}
