import EventLoop
import Glibc

/// A socket that clients can connect to, on its way to the ``Listener`` that accepts them.
struct ListeningSocket: Sendable {
    let raw: CInt
    /// As it is configured.
    let wanted: SocketAddress
    /// The port as the system chose it, if it was to choose.
    let address: SocketAddress

    /// Whether it is where clients are awaited by a configuration with this address.
    func serves(_ address: SocketAddress) -> Bool { wanted == address || self.address == address }

    /// What a supervisor that keeps it calls it (FDNAME= of sd_notify(3): no colons).
    var name: String { "proxy " + wanted.description.map { $0 == ":" ? "_" : String($0) }.joined() }

    /// Opens a socket on each address, or none.
    /// - Parameters:
    ///   - file: where the addresses are written.
    ///   - inherited: sockets that listen already, from a supervisor. One that has a wanted address is taken over.
    static func open(
        on addresses: [SocketAddress], namedIn file: String, inherited: [CInt] = []
    ) throws(ListenError) -> [ListeningSocket] {
        var sockets: [ListeningSocket] = []
        for address in addresses {
            if let raw = inherited.first(where: { Socket.localAddress($0) == address }) {
                _ = fcntl(raw, F_SETFL, fcntl(raw, F_GETFL) | O_NONBLOCK)
                sockets.append(ListeningSocket(raw: raw, wanted: address, address: address))
                continue
            }
            do throws(SystemError) {
                let descriptor = try Socket.listen(on: address, backlog: 1024, reusePort: false)
                let actual = Socket.localAddress(descriptor.raw) ?? address
                sockets.append(ListeningSocket(raw: descriptor.release(), wanted: address, address: actual))
            } catch {
                for socket in sockets where !inherited.contains(socket.raw) { close(socket.raw) }
                throw ListenError(address: address, cause: error, file: file)
            }
        }
        return sockets
    }
}

/// A listening socket that a supervisor hands over, with the name that it has there.
package struct InheritedSocket: Sendable {
    let raw: CInt
    let name: String

    /// - Parameter raw: taken over.
    package init(raw: CInt, name: String) {
        self.raw = raw
        self.name = name
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
