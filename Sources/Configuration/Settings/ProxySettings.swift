package import PinproxySession
package import PinproxyTLS

/// The proxy port (`proxy` in pinproxy.yaml).
package struct ProxySettings: Sendable {
    package var listen: ListenSettings
    package var socket: SocketAccess
    /// The certificate of a proxy port with TLS (an `https://` proxy); nil: plain text.
    package var tls: Identity?
    /// Whether the proxy port speaks TLS, also where ``tls`` was not read.
    package var speaksTLS: Bool
    /// Nil for one a core.
    package var workers: Int?
    /// Nil: every client in `allowClients` may use the proxy.
    package var users: UserFile?
    /// The clients that may connect. Never empty.
    package var allowClients: [AddressRange]
    /// The only user served, besides runs; nil: everybody in `allowClients`. Set for `pinproxy exec --start`.
    package var owner: UInt32?
    /// Whether messages that pass get a Via field (RFC 9110 section 7.6.3).
    package var via: Bool
    /// Protocols offered to clients by ALPN, inside CONNECT and on a proxy port with TLS, best first.
    package var http: [HTTPProtocol]
}

/// A htpasswd file, read and checked for its shape: every line is `name:hash` with a bcrypt hash.
package struct UserFile: Sendable, Equatable {
    package var path: String
    /// The lines that hold users, without comments and blank lines.
    package var lines: [String]
}
