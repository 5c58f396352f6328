public import FoundationEssentials
public import PinproxySerialization

/// A cookie as a server set it (RFC 6265bis). Its description hides the value.
public struct Cookie: Sendable, Hashable {
    /// The value of its SameSite attribute.
    public enum SameSite: String, Sendable, Hashable, Codable {
        /// Sent with requests from the same site only. Requests of a program count as such.
        case strict
        /// Also sent on navigation from other sites.
        case lax
        /// Sent with all requests.
        case none
    }

    /// The name; may be empty.
    public let name: String
    /// The value.
    public let value: Secret
    /// The canonical domain: lower-case, without a leading dot.
    public let domain: String
    /// Whether it is for ``domain`` alone, and not for the hosts below it.
    public let isHostOnly: Bool
    /// The path; begins with a slash.
    public let path: String
    /// The expiry; nil: a session cookie, which ends with its store.
    public let expires: Date?
    /// Whether it is sent over https only.
    public let isSecure: Bool
    /// Whether it is hidden from scripts.
    public let isHTTPOnly: Bool
    /// The SameSite attribute; nil: not given.
    public let sameSite: SameSite?

    /// A cookie of a program; the server's rules for names and lengths apply when it is stored.
    /// - Parameters:
    ///   - name: see RFC 6265bis section 4.1.1.
    ///   - value: the same.
    ///   - domain: a host.
    ///   - isHostOnly: false: for all hosts below it, too.
    ///   - path: of the URLs that it is sent to, with those below.
    ///   - expires: nil: with the store.
    ///   - isSecure: for https only.
    ///   - isHTTPOnly: not meant for scripts.
    ///   - sameSite: nil: not given.
    public init(
        name: String, value: Secret, domain: String, isHostOnly: Bool = true, path: String = "/",
        expires: Date? = nil, isSecure: Bool = true, isHTTPOnly: Bool = true, sameSite: SameSite? = nil
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.expires = expires
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
    }

    /// RFC 6265bis section 5.1.4.
    func matches(path requested: Substring) -> Bool {
        guard requested.utf8.starts(with: path.utf8) else { return false }
        if path.utf8.count == requested.utf8.count || path.hasSuffix("/") { return true }
        return requested.utf8.dropFirst(path.utf8.count).first == UInt8(ascii: "/")
    }

    /// Section 5.1.3. - Parameter isAddress: an IP address has no hosts below it.
    func matches(host: String, isAddress: Bool) -> Bool {
        host == domain || !isHostOnly && !isAddress && Self.isBelow(host, domain)
    }

    static func isBelow(_ host: String, _ domain: String) -> Bool {
        host.utf8.count > domain.utf8.count && host.hasSuffix(domain)
            && host.utf8.dropLast(domain.utf8.count).last == UInt8(ascii: ".")
    }

    func isExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }
}

extension Cookie: CustomStringConvertible {
    /// The name, domain and path.
    public var description: String { "\(name)=\(value); Domain=\(domain); Path=\(path)" }
}
