import FoundationEssentials
import PinproxyHTTPWire
import PinproxySecurity
import PinproxySerialization
import PinproxySession

/// Reads a Set-Cookie field (RFC 6265bis sections 5.6 and 5.7).
struct SetCookie {
    static let longest = 4096
    static let longestAttribute = 1024
    /// Section 5.5: no cookie lives longer.
    static let longestLife: TimeInterval = 400 * 86400

    private(set) var name = ""
    private(set) var value = ""
    private var domain: String?
    private var path: String?
    private var expires: Date?
    private var maxAge: TimeInterval?
    private var isSecure = false
    private var isHTTPOnly = false
    private var sameSite: Cookie.SameSite?

    /// Nil: the field is ignored.
    init?(_ field: String) {
        guard !field.utf8.contains(where: { ($0 < 0x20 && $0 != 9) || $0 == 0x7F }) else { return nil }
        var parts = field.split(separator: ";", omittingEmptySubsequences: false)[...]
        guard let pair = parts.popFirst() else { return nil }
        if let equals = pair.firstIndex(of: "=") {
            name = Self.trimmed(pair[..<equals])
            value = Self.trimmed(pair[pair.index(after: equals)...])
        } else {
            value = Self.trimmed(pair)
        }
        guard !name.isEmpty || !value.isEmpty, name.utf8.count + value.utf8.count <= Self.longest else { return nil }
        for part in parts { take(part) }
    }

    /// The last of an attribute counts; a long one is ignored.
    private mutating func take(_ part: Substring) {
        let equals = part.firstIndex(of: "=")
        let name = Self.trimmed(part[..<(equals ?? part.endIndex)]).lowercased()
        let value = equals.map { Self.trimmed(part[part.index(after: $0)...]) } ?? ""
        guard value.utf8.count <= Self.longestAttribute else { return }
        switch name {
        case "expires": if let date = CookieDate.date(value) { expires = date }
        case "max-age":
            let digits = value.hasPrefix("-") ? value.dropFirst() : value[...]
            guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return }
            maxAge = value.hasPrefix("-") ? 0 : min(TimeInterval(value) ?? 0, Self.longestLife)
        case "domain": domain = value.hasPrefix(".") ? String(value.dropFirst()).lowercased() : value.lowercased()
        case "path": path = value
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        case "samesite": sameSite = Cookie.SameSite(rawValue: value.lowercased())
        default: break
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }

    /// The cookie that the server may set; nil: it may not.
    func cookie(from place: CookiePlace, at now: Date) -> Cookie? {
        var domain = domain ?? ""
        if !domain.isEmpty, !domain.utf8.allSatisfy({ $0 < 0x80 }) { return nil }
        if !domain.isEmpty, PublicSuffixes.system.contains(domain) {
            guard domain == place.host else { return nil }
            domain = ""
        }
        guard domain.isEmpty || domain == place.host || !place.isAddress && Cookie.isBelow(place.host, domain)
        else { return nil }
        // A whole top-level domain that no list has, such as `internal`.
        guard domain.isEmpty || domain == place.host || domain.contains(".") else { return nil }
        guard !isSecure || place.isSecure, sameSite != Cookie.SameSite.none || isSecure else { return nil }
        let given = path.flatMap { $0.hasPrefix("/") ? $0 : nil }
        guard meetsPrefix(isHostOnly: domain.isEmpty, isForRoot: given == "/") else { return nil }
        let life = maxAge.map { $0 <= 0 ? Date.distantPast : now.addingTimeInterval($0) } ?? expires
        return Cookie(
            name: name, value: Secret(value), domain: domain.isEmpty ? place.host : domain,
            isHostOnly: domain.isEmpty, path: given ?? place.defaultPath,
            expires: life.map { min($0, now.addingTimeInterval(Self.longestLife)) }, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite)
    }

    /// Section 4.1.3, in any case. A cookie without a name must not look like one with such a name.
    private func meetsPrefix(isHostOnly: Bool, isForRoot: Bool) -> Bool {
        let name = name.lowercased()
        let value = value.lowercased()
        if name.isEmpty { return !value.hasPrefix("__secure-") && !value.hasPrefix("__host-") }
        if name.hasPrefix("__secure-") { return isSecure }
        if name.hasPrefix("__host-") { return isSecure && isHostOnly && isForRoot }
        return true
    }
}

/// A URL as cookies see it.
struct CookiePlace {
    let host: String
    let isAddress: Bool
    let isSecure: Bool
    let path: String

    init(_ url: RequestURL) {
        let authority = url.authority.canonical
        host = authority.host
        isAddress = authority.kind != .name
        isSecure = url.isSecure
        let target = url.target.prefix { $0 != UInt8(ascii: "?") }
        path = target.first == UInt8(ascii: "/") ? String(decoding: target, as: UTF8.self) : "/"
    }

    /// RFC 6265bis section 5.1.4: up to the last slash.
    var defaultPath: String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex else { return "/" }
        return String(path[..<slash])
    }
}
