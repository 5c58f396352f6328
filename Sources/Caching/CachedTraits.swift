// Caching: RFC 9111 without I/O: what may be stored, how long it is fresh, and what a request gets of it. Pure.

package import PinproxyHTTPWire

/// Properties of a response for a cache, read once from its head.
package struct CachedTraits: Sendable, Equatable {
    package enum Expires: Sendable, Equatable {
        case unsaid
        case at(Int64)
        /// Not a date, as `0`: in the past (RFC 9111 section 5.3).
        case invalid
    }

    package let status: Int
    package private(set) var directives = CacheDirectives()
    /// Unix seconds.
    package private(set) var date: Int64?
    /// Seconds (RFC 9111 section 5.1).
    package private(set) var age: Int64 = 0
    package private(set) var expires = Expires.unsaid
    package private(set) var lastModified: Int64?
    package private(set) var etag: EntityTag?
    package private(set) var vary = VaryNames.none
    package private(set) var setsCookie = false
    /// The Content-Range of a 206; also nil for contradictory ones.
    package private(set) var contentRange: ContentRange?

    package init(_ response: borrowing ResponseView) {
        status = response.head.status
        var (pragma, ranges, ages, isCoded) = (CacheDirectives(), 0, 0, false)
        for field in response.head.fields {
            let value = response.bytes.extracting(field.value.offsets)
            switch field.id {
            case .cacheControl: directives.add(value)
            case .pragma: pragma.add(value)
            case .date: date = date ?? HTTPDate.parse(value)
            case .age:
                ages += 1
                if ages == 1 { age = Self.firstSeconds(value) }
            case .expires: add(expires: HTTPDate.parse(value))
            case .lastModified: lastModified = lastModified ?? HTTPDate.parse(value)
            case .etag: etag = etag ?? EntityTag.parse(value)
            case .vary: vary.add(value)
            case .contentEncoding: isCoded = true
            case .setCookie: setsCookie = true
            case .contentRange:
                ranges += 1
                contentRange = ranges == 1 ? ContentRange.parse(value) : nil
            default: break
            }
        }
        // Many servers forget Vary, and programs of one user support different codings.
        if isCoded { vary.add(Array("accept-encoding".utf8).span) }
        // RFC 9111 section 5.4 says it of requests; servers send it, and mean the same.
        if !directives.isPresent, pragma.flags.contains(.noCache) { directives.flags.insert(.noCache) }
    }

    /// Several values contradict each other: the earliest counts.
    private mutating func add(expires new: Int64?) {
        switch (expires, new) {
        case (.unsaid, let new?): expires = .at(new)
        case (.at(let known), let new?): expires = .at(min(known, new))
        default: expires = .invalid
        }
    }

    /// The seconds in a list's first member; ignored if it isn't a number (RFC 9111 section 5.1).
    private static func firstSeconds(_ value: Span<UInt8>) -> Int64 {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == 0x09 }
        guard let first = value.array.split(separator: UInt8(ascii: ",")).first else { return 0 }
        return CacheDirectives.seconds(Array(first.drop(while: isBlank).reversed().drop(while: isBlank).reversed()))
            ?? 0
    }

    /// A validator that a conditional request can carry (RFC 9111 section 4.3.1).
    package var hasValidator: Bool { etag != nil || lastModified != nil }
}
