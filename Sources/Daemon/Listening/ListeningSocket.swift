import Glibc
import PinproxyConfiguration
import PinproxyEventLoop

struct ListeningSocket: Sendable {
    let raw: CInt
    let port: ListenPort
    let wanted: Endpoint
    /// With the system's choice for port 0.
    let place: Endpoint
    /// A supervisor's socket by name (`listen: systemd`), which it keeps.
    let isNamed: Bool
    var isDoor = false

    /// The backlog, cut to net.core.somaxconn (4096 by default). Clients retry a full queue a second later.
    private static let queue: CInt = 65535

    /// A supervisor may keep it for the next process, except Unix sockets.
    var isKept: Bool { !isNamed && address != nil }

    /// Nil: a Unix socket.
    var address: SocketAddress? { place.address }

    /// Whether it is the socket of a configured place.
    func serves(_ place: Endpoint) -> Bool { wanted == place || self.place == place }

    func serves(_ address: SocketAddress) -> Bool { serves(.network(address)) }

    /// Its name for a supervisor (FDNAME= of sd_notify(3): no colons).
    var name: String { "\(port) " + wanted.description.map { $0 == ":" ? "_" : String($0) }.joined() }

    /// A supervisor's sockets for the port (`listen: systemd`).
    static func named(for port: ListenPort, among inherited: [InheritedSocket]) -> [ListeningSocket] {
        var sockets: [ListeningSocket] = []
        for socket in inherited where socket.isNamed(for: port) {
            guard let address = socket.address, !sockets.contains(where: { $0.address == address }) else { continue }
            sockets.append(take(socket, at: address, port, isNamed: true))
        }
        return sockets
    }

    /// Opens a socket on each address, or none.
    /// - Parameters:
    ///   - file: of the addresses.
    ///   - inherited: listening sockets of a supervisor, which are taken over for wanted addresses.
    static func open(
        _ port: ListenPort, on addresses: [SocketAddress], namedIn file: String, inherited: [InheritedSocket] = []
    ) throws(ListenError) -> [ListeningSocket] {
        var sockets: [ListeningSocket] = []
        var opened: [CInt] = []
        for address in addresses {
            if let socket = inherited.first(where: { $0.fits(address, of: port) }) {
                sockets.append(take(socket, at: address, port, isNamed: false))
                continue
            }
            do throws(SystemError) {
                let descriptor = try Socket.listen(on: address, backlog: Self.queue, reusePort: false)
                let actual = Socket.localAddress(descriptor.raw) ?? address
                let raw = descriptor.release()
                opened.append(raw)
                sockets.append(
                    ListeningSocket(
                        raw: raw, port: port, wanted: .network(address), place: .network(actual), isNamed: false))
            } catch {
                for raw in opened { close(raw) }
                throw ListenError(address: address, cause: error, port: port, file: file)
            }
        }
        return sockets
    }

    /// Opens Unix sockets, or none. Stale ones are replaced.
    static func open(
        _ port: ListenPort, at paths: [String], _ access: SocketAccess, namedIn file: String
    ) throws(SocketFileError)
        -> [ListeningSocket]
    {
        var sockets: [ListeningSocket] = []
        for path in paths {
            do throws(SystemError) {
                if UnixSocket.isAnswered(at: path) { throw SystemError(code: EADDRINUSE, call: "bind") }
                let raw = try UnixSocket.listen(at: path, backlog: Self.queue, mode: access.mode, group: access.group)
                    .release()
                sockets.append(
                    ListeningSocket(raw: raw, port: port, wanted: .unix(path), place: .unix(path), isNamed: false))
            } catch {
                for socket in sockets { socket.discard() }
                throw SocketFileError(path: path, cause: error, port: port, file: file)
            }
        }
        return sockets
    }

    /// Opens a socket of the state directory. A stale one is replaced.
    static func own(at path: String, mode: UInt32 = 0o600, isDoor: Bool = false) throws(SystemError) -> ListeningSocket
    {
        let raw = try UnixSocket.listen(at: path, backlog: queue, mode: mode).release()
        let place = Endpoint.unix(path)
        return ListeningSocket(raw: raw, port: .proxy, wanted: place, place: place, isNamed: false, isDoor: isDoor)
    }

    func apply(_ access: SocketAccess) {
        guard let path = place.path else { return }
        try? UnixSocket.allow(mode: access.mode, group: access.group, at: path)
    }

    func discard() {
        close(raw)
        if let path = place.path { unlink(path) }
    }

    private static func take(
        _ socket: InheritedSocket, at address: SocketAddress, _ port: ListenPort, isNamed: Bool
    ) -> ListeningSocket {
        _ = fcntl(socket.raw, F_SETFL, fcntl(socket.raw, F_GETFL) | O_NONBLOCK)
        return ListeningSocket(
            raw: socket.raw, port: port, wanted: .network(address), place: .network(address), isNamed: isNamed)
    }
}

/// The ports, by their names in the configuration and systemd's units.
enum ListenPort: String {
    case proxy, admin
}

/// A socket from a supervisor, with its name there: a socket unit's (FileDescriptorName= of systemd.socket(5)) is the
/// port's; one that an earlier process has stored has ``ListeningSocket/name``.
package struct InheritedSocket: Sendable {
    let raw: CInt
    let name: String
    /// Nil: not a listening TCP socket.
    let address: SocketAddress?

    /// - Parameter raw: taken over.
    package init(raw: CInt, name: String, isListener: Bool) {
        self.raw = raw
        self.name = name
        address = isListener ? Socket.localAddress(raw) : nil
    }

    private var owner: ListenPort? { ListenPort(rawValue: String(name.prefix { $0 != " " })) }

    /// Whether the port's `listen: systemd` means it.
    func isNamed(for port: ListenPort) -> Bool { address != nil && name == port.rawValue }

    /// Whether it can serve the address for the port.
    func fits(_ wanted: SocketAddress, of port: ListenPort) -> Bool {
        address == wanted && (owner == nil || owner == port)
    }
}

/// Why an address can't be listened on, and what to do.
struct ListenError: Error, CustomStringConvertible {
    let address: SocketAddress
    let cause: SystemError
    let port: ListenPort
    /// The configuration file with the address.
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
            """
            \(address) can't be listened on (\(cause.reason)): this machine has no IPv6; take the address out of \(key)
            """
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
    let file: String

    var reason: String {
        switch cause.code {
        case EEXIST: "\(path) exists and is not a socket; remove it, or choose another path"
        case EADDRINUSE: "\(path) is already in use by another program: choose another path"
        case EPERM where cause.call == "chown", EINVAL where cause.call == "chown":
            "\(path) can't be given to socket_group: the proxy's user is not in that group"
        case ENOENT:
            "\(path): its directory is not there: create it (RuntimeDirectory=pinproxy in the unit makes /run/pinproxy)"
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
        return
            "\(file): \(port).listen is systemd, and systemd hands over no TCP socket named \"\(port)\": start \(unit) "
            + "(systemctl enable --now \(unit)), which has FileDescriptorName=\(port), before the proxy; or write an "
            + "address"
    }
}
