import EventLoop
import Glibc

/// A socket that clients can connect to, on its way to the ``Listener`` that accepts them.
struct ListeningSocket: Sendable {
    let raw: CInt
    /// The port as the system chose it, if it was to choose.
    let address: SocketAddress

    /// Opens a socket on each address, or none.
    /// - Parameter file: where the addresses are written.
    static func open(on addresses: [SocketAddress], namedIn file: String) throws(ListenError) -> [ListeningSocket] {
        var sockets: [ListeningSocket] = []
        for address in addresses {
            do throws(SystemError) {
                let descriptor = try Socket.listen(on: address, backlog: 1024, reusePort: false)
                let actual = Socket.localAddress(descriptor.raw) ?? address
                sockets.append(ListeningSocket(raw: descriptor.release(), address: actual))
            } catch {
                for socket in sockets { close(socket.raw) }
                throw ListenError(address: address, cause: error, file: file)
            }
        }
        return sockets
    }
}

/// Why the proxy can't listen, and what to do.
struct ListenError: Error, CustomStringConvertible {
    let address: SocketAddress
    let cause: SystemError
    /// The configuration file whose `proxy.listen` has the address.
    let file: String

    var description: String {
        switch cause.code {
        case EADDRINUSE:
            "\(address) is already in use by another program: stop that one "
                + "(ss -ltnp 'sport = :\(address.port)' shows it), or choose another proxy.listen in \(file)"
        case EADDRNOTAVAIL:
            "\(address.ip) is not an address of this machine (\(cause.reason)): ip address shows which are; "
                + "choose one of them for proxy.listen in \(file)"
        case EACCES:
            "\(address) can't be listened on (\(cause.reason)): ports below 1024 need root or CAP_NET_BIND_SERVICE; "
                + "choose another proxy.listen in \(file)"
        default: "\(address) can't be listened on (\(cause)): see proxy.listen in \(file)"
        }
    }
}
