package import PinproxyTLS

/// The admin port (`admin` in pinproxy.yaml): health, metrics, tasks and the status page.
package struct AdminSettings: Sendable {
    /// Empty: there is no admin port.
    package var listen: [ListenPlace] = []
    /// `systemd`: also on the sockets that it hands over under the name `admin`.
    package var takesInherited = false
    /// Whether other machines may be let reach it.
    package var isProtected: Bool { tls != nil && token != nil }
    /// The certificate of the port with TLS; nil: plain text.
    package var tls: Identity?
    /// The digest of what a request has to bring in `Authorization: Bearer`; nil: it needs nothing, and changes
    /// nothing.
    package var token: SHA256Digest?
    /// Lower-case names of the port, besides addresses and `localhost`.
    package var hosts: [String] = []
    package var socket = SocketAccess()

    package init() {}
}

package enum ListenPlace: Sendable, Hashable, CustomStringConvertible {
    case address(ListenAddress)
    /// A Unix socket; an absolute path.
    case unix(String)

    package var description: String {
        switch self {
        case .address(let address): address.description
        case .unix(let path): "unix:\(path)"
        }
    }

    package var isLocal: Bool {
        switch self {
        case .address(let address): address.isLoopback
        case .unix: true
        }
    }

    /// Parses `ADDRESS:PORT` or `unix:PATH`.
    /// - Parameter file: what a relative path is relative to.
    static func parse(_ text: String, relativeTo file: String) -> Result<ListenPlace, Reason> {
        guard text.hasPrefix("unix:") else { return ListenAddress.parse(text).map(ListenPlace.address) }
        let path = String(text.dropFirst(5))
        guard !path.isEmpty, !path.hasSuffix("/") else {
            return .failure(Reason("\"\(text)\" names no socket; write e.g. unix:/run/pinproxy/admin.sock"))
        }
        return .success(.unix(FileContents.resolve(path, relativeTo: file)))
    }
}

/// The users who may connect to a Unix socket, by its permissions.
package struct SocketAccess: Sendable, Hashable {
    /// The file's mode, e.g. 0o660.
    package var mode: UInt32 = 0o600
    /// The file's group by its number; nil: the process's.
    package var group: UInt32?
}
