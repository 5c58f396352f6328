/// One end of a stream connection, or where one is awaited.
package enum Endpoint: Hashable, Sendable, CustomStringConvertible {
    case network(SocketAddress)
    /// A Unix socket by the path of its file. Who connects to one has no address of its own.
    case unix(String)

    /// `192.0.2.1:80`, `[2001:db8::1]:80` or `unix:/run/pinproxy/proxy.sock`
    package var description: String {
        switch self {
        case .network(let address): address.description
        case .unix(let path): "unix:\(path)"
        }
    }

    /// Nil of a Unix socket.
    package var address: SocketAddress? { if case .network(let address) = self { address } else { nil } }

    /// Nil of an address.
    package var path: String? { if case .unix(let path) = self { path } else { nil } }
}
