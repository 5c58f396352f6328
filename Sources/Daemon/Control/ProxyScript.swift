import PinproxyConfiguration
import PinproxyEventLoop

/// The answer of `/proxy.pac` (Proxy Auto-Config).
enum ProxyScript {
    static let type = "application/x-ns-proxy-autoconfig"

    /// - Parameters:
    ///   - listeners: where the proxy listens.
    ///   - host: the client's name for this machine, without a port; nil: unknown.
    ///   - isSecure: the proxy's port speaks TLS.
    static func text(_ listeners: [SocketAddress], askedAs host: String?, isSecure: Bool) -> String {
        let word = isSecure ? "HTTPS" : "PROXY"
        let ways = listeners.map { "\(word) \(reached($0, askedAs: host))" }
        return """
            function FindProxyForURL(url, host) {
              if (isPlainHostName(host) || host === "127.0.0.1" || host === "[::1]" || host === "::1" ||
                  dnsDomainIs(host, ".localhost")) return "DIRECT";
              return "\(ways.joined(separator: "; "))";
            }

            """
    }

    /// Replaces "all addresses" by the host that the client used.
    private static func reached(_ address: SocketAddress, askedAs host: String?) -> String {
        guard address.ip.isUnspecified else { return address.description }
        let own = host ?? (address.ip.isIPv6 ? "::1" : "127.0.0.1")
        return own.contains(":") ? "[\(own)]:\(address.port)" : "\(own):\(address.port)"
    }
}
