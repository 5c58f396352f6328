package import PinproxyTLS

/// The key of a stored response, besides its policy and the fields in Vary.
package struct CacheKey: Sendable, Hashable {
    /// The clients that a response is stored for.
    package enum Owner: Sendable, Hashable {
        case everybody
        /// A user of this machine.
        case user(UInt32)
        /// A user of the proxy, by name.
        case account([UInt8])
    }

    /// Path and query, as sent.
    package let target: [UInt8]
    /// Canonical: lower-case, no trailing dot, no brackets.
    package let host: String
    package let port: UInt16
    package let isSecure: Bool
    package let owner: Owner

    /// For people: `https://example.com`.
    package var origin: String {
        let port = port == (isSecure ? 443 : 80) ? "" : ":\(port)"
        let host = host.contains(":") ? "[\(host)]" : host
        return "http\(isSecure ? "s" : "")://\(host)\(port)"
    }

    var url: String { origin + String(decoding: target, as: UTF8.self) }
}

/// The policy and rules that a response was verified and validated by: it isn't served under others.
package struct CachePolicy: Sendable, Hashable {
    /// The identity of policy, trust, TLS settings, parent and address rules.
    let origin: OriginKey
    let rules: SHA256Digest

    package init(origin: OriginKey, rules: SHA256Digest) {
        self.origin = origin
        self.rules = rules
    }
}
