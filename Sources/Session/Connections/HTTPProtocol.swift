/// The versions of HTTP that ends of a TLS connection agree about, by their ALPN names (RFC 7301 section 6).
package enum HTTPProtocol: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    case http2 = "h2"
    case http1 = "http/1.1"

    package var description: String { rawValue }

    /// Offered unless the configuration says otherwise.
    package static let usual: [HTTPProtocol] = [.http2, .http1]
}
