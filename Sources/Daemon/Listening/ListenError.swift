import EventLoop
import Glibc

/// Why an address can't be listened on, and what to do.
struct ListenError: Error, CustomStringConvertible {
    let address: SocketAddress
    let cause: SystemError
    let port: ListenPort
    /// The configuration file whose `listen` has the address.
    let file: String

    var description: String {
        let key = "\(port).listen in \(file)"
        return switch cause.code {
        case EADDRINUSE:
            "\(address) is already in use by another program: stop that one "
                + "(ss -ltnp 'sport = :\(address.port)' shows it), or choose another \(key)"
        case EADDRNOTAVAIL:
            "\(address.ip) is not an address of this machine (\(cause.reason)): ip address shows which are; "
                + "choose one of them for \(key)"
        case EAFNOSUPPORT where address.ip.isIPv6:
            "\(address) can't be listened on (\(cause.reason)): this machine has no IPv6; take the address out of \(key)"
        case EACCES:
            "\(address) can't be listened on (\(cause.reason)): ports below 1024 need root or CAP_NET_BIND_SERVICE; "
                + "choose another \(key)"
        default: "\(address) can't be listened on (\(cause)): see \(key)"
        }
    }
}

/// Why a Unix socket can't be made, and what to do.
struct SocketFileError: Error, CustomStringConvertible {
    let path: String
    let cause: SystemError
    let port: ListenPort
    /// The configuration file whose `listen` has the path.
    let file: String

    /// Without where it is written.
    var reason: String {
        switch cause.code {
        case EEXIST: "\(path) is there and is no socket: remove it, or choose another path"
        case EADDRINUSE: "\(path) is already in use by another program: choose another path"
        case EPERM where cause.call == "chown", EINVAL where cause.call == "chown":
            "\(path) can't be given to socket_group: the proxy's user is not in that group"
        case ENOENT: "\(path): its directory is not there: create it (RuntimeDirectory=pinproxy in the unit makes /run/pinproxy)"
        default: "\(path): \(cause)"
        }
    }

    var description: String { "\(port).listen in \(file): \(reason)" }
}

/// `listen: systemd`, and systemd hands over no socket for it.
package struct MissingSocket: Error, CustomStringConvertible {
    let port: ListenPort
    let file: String

    package var description: String {
        let unit = port == .proxy ? "pinproxy.socket" : "pinproxy-\(port).socket"
        return "\(file): \(port).listen is systemd, and systemd hands over no TCP socket named \"\(port)\": start \(unit) "
            + "(systemctl enable --now \(unit)), which has FileDescriptorName=\(port), before the proxy; or write an address"
    }
}
