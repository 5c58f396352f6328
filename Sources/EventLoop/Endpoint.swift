/// One end of a stream connection, or of a listener.
package enum Endpoint: Hashable, Sendable, CustomStringConvertible {
    case network(SocketAddress)
    /// A Unix socket by its path. Its clients have no address.
    case unix(String)

    /// `192.0.2.1:80`, `[2001:db8::1]:80` or `unix:/run/pinproxy/proxy.sock`
    package var description: String {
        switch self {
        case .network(let address): address.description
        case .unix(let path): "unix:\(path)"
        }
    }

    package var address: SocketAddress? { if case .network(let address) = self { address } else { nil } }

    package var path: String? { if case .unix(let path) = self { path } else { nil } }
}
