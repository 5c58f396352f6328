import FoundationEssentials
import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession
import Synchronization

/// Cookies in memory, as servers set them and as requests get them back (RFC 6265bis). Thread-safe; sessions may share
/// one.
///
/// A cookie goes only to hosts and paths that match it, and with Secure only over https, after redirects too. A server
/// can't set cookies for a public suffix (`co.uk`), and one without https can't replace a Secure cookie. A request that
/// has a Cookie field keeps it.
///
/// There are at most 50 cookies of a domain, 3,000 in all, of 4,096 bytes each: beyond that the expired go first, then
/// those that were not used for longest.
public final class CookieStore: Sendable {
    private let state = Mutex(CookieTable())
    private let now: @Sendable () -> Date

    /// Creates an empty store.
    public convenience init() { self.init(now: { Date() }) }

    init(now: @escaping @Sendable () -> Date) { self.now = now }

    // MARK: Servers

    /// Stores the cookie of a Set-Cookie field, if its server may set it.
    func receive(_ field: String, from url: RequestURL) {
        let place = CookiePlace(url)
        let now = now()
        guard let read = SetCookie(field), let cookie = read.cookie(from: place, at: now) else { return }
        state.withLock { state in
            // Section 5.7 step 16: not even one that a request to this path would get.
            if !place.isSecure, !cookie.isSecure, state.hasSecure(like: cookie) { return }
            state.set(cookie, at: now)
        }
    }

    /// The value of a request's Cookie field; nil: none.
    func field(for url: RequestURL) -> String? {
        let place = CookiePlace(url)
        let now = now()
        let found = state.withLock { $0.take(for: place, at: now) }
        guard !found.isEmpty else { return nil }
        return found.map { $0.name.isEmpty ? $0.value.text : "\($0.name)=\($0.value.text)" }.joined(separator: "; ")
    }

    // MARK: Programs

    /// The unexpired cookies, for a program to store.
    public var cookies: [Cookie] {
        let now = now()
        return state.withLock { $0.all }.filter { !$0.isExpired(at: now) }
    }

    /// Stores a cookie, in place of one of the same name, domain and path.
    /// - Throws: ``SessionError/invalidRequest(_:)`` if a request can't carry it.
    public func set(_ cookie: Cookie) throws(SessionError) {
        func isFit(_ text: String) -> Bool {
            !text.utf8.contains { $0 < 0x20 || $0 == 0x7F || $0 == UInt8(ascii: ";") }
                && text.first != " " && text.last != " "
        }
        let (name, value) = (cookie.name, cookie.value.text)
        guard isFit(name), isFit(value), !name.contains("="), !name.isEmpty || !value.isEmpty,
            name.utf8.count + value.utf8.count <= SetCookie.longest
        else {
            throw .invalidRequest("the cookie \(name.debugDescription) has a character or length that none can have")
        }
        guard cookie.path.hasPrefix("/"), isFit(cookie.path) else {
            throw .invalidRequest("the cookie \(name): \(cookie.path.debugDescription) is not a path")
        }
        guard case .success(let host) = Authority.parse(cookie.domain, defaultPort: 443),
            host.canonical.host == cookie.domain
        else {
            throw .invalidRequest("the cookie \(name): \(cookie.domain.debugDescription) is not a host in lower case")
        }
        let now = now()
        state.withLock { $0.set(cookie, at: now) }
    }

    /// Removes one, if it is there.
    public func remove(_ cookie: Cookie) { state.withLock { $0.remove(CookieTable.Key(cookie), of: cookie.domain) } }

    /// Removes all cookies.
    public func removeAll() {
        state.withLock { $0 = CookieTable() }
    }
}
