/// The field names that the proxy has a rule for; all others are `other`.
///
/// A known name is hop-by-hop, and never forwarded unchanged (RFC 9110 section 7.6.1), or end-to-end, and then
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

/// Looks up the `FieldName` of a name, by open addressing. It hashes and compares eight bytes at a time.
final class FieldNameTable: Sendable {
    static let shared = FieldNameTable()

    private static let vacant = FieldName.other.rawValue
    /// The length of the longest name, in words.
    private static let wordLimit = 4
    private static let longest = 8 * wordLimit
    /// Converts upper case. No other byte of a line then equals a byte of a name.
    private static let lowerCase: UInt64 = 0x2020_2020_2020_2020

    /// Raw values of `FieldName`, by hash.
    private let slots: [256 of UInt8]
    /// The words of name n begin at n * `wordLimit`, padded with zeros.
    private let words: [256 of UInt64]
    private let counts: [64 of UInt8]

    private init() {
        var slots: [256 of UInt8] = .init(repeating: Self.vacant)
        var words: [256 of UInt64] = .init(repeating: 0)
        var counts: [64 of UInt8] = .init(repeating: 0)
        for name in FieldName.allCases where name != .other {
            let text = Array(name.text.utf8)
            let index = Int(name.rawValue)
            var hash = NameHash()
            for start in stride(from: 0, to: text.count, by: 8) {
                let word = (start..<start + 8).reversed().reduce(0 as UInt64) {
                    $0 << 8 | ($1 < text.count ? UInt64(text[$1]) : 0)
                }
                words[index * Self.wordLimit + start / 8] = word
                hash.add(word)
            }
            counts[index] = UInt8(text.count)
            while slots[hash.slot] != Self.vacant { hash.advance() }
            slots[hash.slot] = name.rawValue
        }
        (self.slots, self.words, self.counts) = (slots, words, counts)
    }

    /// The name at the beginning of a line, and its colon; `other` for anything unknown, whether valid or not. Nil:
    /// read the line byte by byte. The line must not contain control characters.
    func beginning(_ line: Int, in bytes: Span<UInt8>) -> (name: FieldName, colon: Int)? {
        var hash = NameHash()
        var start = line
        let last = min(bytes.count &- 8, line &+ Self.longest &- 8)
        while start <= last {
            let word = bytes.word(at: start)
            let isColon = word ^ 0x3A3A_3A3A_3A3A_3A3A
            // The lowest mark is exact.
            let marks = (isColon &- 0x0101_0101_0101_0101) & ~isColon & 0x8080_8080_8080_8080
            guard marks != 0 else {
                hash.add(word | Self.lowerCase)
                start &+= 8
                continue
            }
            let rest = (word | Self.lowerCase) & ((marks & (~marks &+ 1)) &>> 7 &- 1)
            if rest != 0 { hash.add(rest) }
            let colon = start &+ marks.trailingZeroBitCount / 8
            while slots[hash.slot] != Self.vacant {
                let name = slots[hash.slot]
                if Int(counts[Int(name)]) == colon &- line, matches(name, line, start, rest, in: bytes) {
                    return FieldName(rawValue: name).map { ($0, colon) }
                }
                hash.advance()
            }
            return (.other, colon)
        }
        return nil
    }

    /// Compares the words from `line` to `start`, and the remaining bytes, with a name.
    @inline(__always)
    private func matches(_ name: UInt8, _ line: Int, _ start: Int, _ rest: UInt64, in bytes: Span<UInt8>) -> Bool {
        var index = Int(name) &* Self.wordLimit
        var offset = line
        while offset < start {
            if bytes.word(at: offset) | Self.lowerCase != words[index] { return false }
            index &+= 1
            offset &+= 8
        }
        return rest == 0 || rest == words[index]
    }

    /// - Parameter range: a token.
    func lookUp(_ range: ByteRange, in bytes: Span<UInt8>) -> FieldName {
        guard !range.isEmpty, range.count <= Self.longest else { return .other }
        var hash = NameHash()
        for start in stride(from: range.start, to: range.end, by: 8) {
            hash.add(Self.word(start, of: range, in: bytes))
        }
        while slots[hash.slot] != Self.vacant {
            let name = slots[hash.slot]
            if Int(counts[Int(name)]) == range.count, equals(name, range, in: bytes) {
                return FieldName(rawValue: name) ?? .other
            }
            hash.advance()
        }
        return .other
    }

    private func equals(_ name: UInt8, _ range: ByteRange, in bytes: Span<UInt8>) -> Bool {
        var index = Int(name) * Self.wordLimit
        for start in stride(from: range.start, to: range.end, by: 8) {
            if Self.word(start, of: range, in: bytes) != words[index] { return false }
            index += 1
        }
        return true
    }

    /// At most eight bytes in lower case; zeros after the end.
    private static func word(_ start: Int, of range: ByteRange, in bytes: Span<UInt8>) -> UInt64 {
        let rest = range.end &- start
        if rest >= 8 { return bytes.word(at: start) | lowerCase }
        if range.count > 8 { return (bytes.word(at: range.end &- 8) | lowerCase) &>> UInt64(8 &* (8 &- rest)) }
        var word: UInt64 = 0
        for offset in (start..<range.end).reversed() { word = word << 8 | UInt64(bytes[offset] | 0x20) }
        return word
    }
}

extension FieldName {
    /// - Parameter name: a token, in any case.
    package init(_ name: Span<UInt8>) { self = FieldNameTable.shared.lookUp(ByteRange(0, name.count), in: name) }

    /// Whether every value of the field is a secret.
    package var isSecret: Bool {
        switch self {
        case .authorization, .proxyAuthorization, .cookie, .setCookie: true
        default: false
        }
    }
}

/// A hash of a field name. It needn't be strong: hits are compared, and the table is fixed.
private struct NameHash {
    private var state: UInt64 = 0

    @inline(__always)
    mutating func add(_ word: UInt64) { state = (state ^ word) &* 0x9E37_79B9_7F4A_7C15 }

    /// The next slot.
    mutating func advance() { state = state &+ 1 << 56 }

    var slot: Int { Int(state >> 56) }
}
