/// The field names that the proxy has a rule for; all others are `other`.
///
/// A known name is hop-by-hop, and never forwarded as it came (RFC 9110 section 7.6.1), or end-to-end, and then
/// Connection can't remove it, as `Connection: Authorization` would.
package enum FieldName: UInt8, Sendable, CaseIterable {
    case accept, acceptEncoding, acceptLanguage, age, allow, authorization, cacheControl, connection
    case contentDisposition, contentEncoding, contentLanguage, contentLength, contentLocation
    case contentRange, contentType, cookie, date, etag, expect, expires, forwarded, from, host
    case http2Settings, ifMatch, ifModifiedSince, ifNoneMatch, ifRange, ifUnmodifiedSince, keepAlive
    case lastModified, location, maxForwards, origin, pragma, proxyAuthenticate
    case proxyAuthenticationInfo, proxyAuthorization, proxyConnection, proxyStatus, range, referer
    case retryAfter, server, setCookie, strictTransportSecurity, te, trailer, transferEncoding, upgrade
    case userAgent, vary, via, wwwAuthenticate, xForwardedFor
    case other

    /// The name in lower case; empty for `other`.
    package var text: String {
        switch self {
        case .accept: "accept"
        case .acceptEncoding: "accept-encoding"
        case .acceptLanguage: "accept-language"
        case .age: "age"
        case .allow: "allow"
        case .authorization: "authorization"
        case .cacheControl: "cache-control"
        case .connection: "connection"
        case .contentDisposition: "content-disposition"
        case .contentEncoding: "content-encoding"
        case .contentLanguage: "content-language"
        case .contentLength: "content-length"
        case .contentLocation: "content-location"
        case .contentRange: "content-range"
        case .contentType: "content-type"
        case .cookie: "cookie"
        case .date: "date"
        case .etag: "etag"
        case .expect: "expect"
        case .expires: "expires"
        case .forwarded: "forwarded"
        case .from: "from"
        case .host: "host"
        case .http2Settings: "http2-settings"
        case .ifMatch: "if-match"
        case .ifModifiedSince: "if-modified-since"
        case .ifNoneMatch: "if-none-match"
        case .ifRange: "if-range"
        case .ifUnmodifiedSince: "if-unmodified-since"
        case .keepAlive: "keep-alive"
        case .lastModified: "last-modified"
        case .location: "location"
        case .maxForwards: "max-forwards"
        case .origin: "origin"
        case .pragma: "pragma"
        case .proxyAuthenticate: "proxy-authenticate"
        case .proxyAuthenticationInfo: "proxy-authentication-info"
        case .proxyAuthorization: "proxy-authorization"
        case .proxyConnection: "proxy-connection"
        case .proxyStatus: "proxy-status"
        case .range: "range"
        case .referer: "referer"
        case .retryAfter: "retry-after"
        case .server: "server"
        case .setCookie: "set-cookie"
        case .strictTransportSecurity: "strict-transport-security"
        case .te: "te"
        case .trailer: "trailer"
        case .transferEncoding: "transfer-encoding"
        case .upgrade: "upgrade"
        case .userAgent: "user-agent"
        case .vary: "vary"
        case .via: "via"
        case .wwwAuthenticate: "www-authenticate"
        case .xForwardedFor: "x-forwarded-for"
        case .other: ""
        }
    }
}

/// Finds the `FieldName` of a name: open addressing over a hash that the parser computes on the way.
struct FieldNameTable: Sendable {
    static let shared = FieldNameTable()

    private static let slotCount = 256
    private static let vacant = FieldName.other.rawValue
    /// Raw values of `FieldName`, by hash.
    private var slots = [UInt8](repeating: vacant, count: slotCount)
    /// All names in one piece; name n is `starts[n]..<starts[n + 1]`.
    private var text: [UInt8] = []
    private var starts: [Int] = [0]

    private init() {
        for name in FieldName.allCases where name != .other {
            var hash = NameHash()
            for byte in name.text.utf8 { hash.add(byte) }
            var slot = hash.slot
            while slots[slot] != Self.vacant { slot = (slot + 1) % Self.slotCount }
            slots[slot] = name.rawValue
            text.append(contentsOf: name.text.utf8)
            starts.append(text.count)
        }
    }

    func lookUp(_ range: ByteRange, in bytes: Span<UInt8>, hash: NameHash) -> FieldName {
        var slot = hash.slot
        while slots[slot] != Self.vacant {
            let candidate = Int(slots[slot])
            let start = starts[candidate]
            if starts[candidate + 1] - start == range.count, equals(start, range, in: bytes) {
                return FieldName(rawValue: slots[slot]) ?? .other
            }
            slot = (slot + 1) % Self.slotCount
        }
        return .other
    }

    private func equals(_ start: Int, _ range: ByteRange, in bytes: Span<UInt8>) -> Bool {
        for offset in 0..<range.count where bytes[range.start + offset].lowercased != text[start + offset] {
            return false
        }
        return true
    }
}

/// A case-insensitive hash of a field name. It needn't be strong: hits are compared, and the table is fixed.
struct NameHash {
    private var state: UInt32 = 0

    @inline(__always)
    mutating func add(_ byte: UInt8) { state = (state << 5) &+ state &+ UInt32(byte | 0x20) }

    var slot: Int { Int((state ^ (state >> 11)) & 0xFF) }
}
