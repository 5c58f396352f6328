import EventLoop
import Glibc

/// A socket that clients can connect to, on its way to the ``Listener`` that accepts them.
struct ListeningSocket: Sendable {
    let raw: CInt
    let port: ListenPort
    /// As it is configured.
    let wanted: SocketAddress
    /// The port as the system chose it, if it was to choose.
    let address: SocketAddress
    /// A supervisor's by its name (`listen: systemd`), which keeps it by itself.
    let isNamed: Bool

    /// Whether it is where clients are awaited by a configuration with this address.
    func serves(_ address: SocketAddress) -> Bool { wanted == address || self.address == address }

    /// What a supervisor that keeps it calls it (FDNAME= of sd_notify(3): no colons).
    var name: String { "\(port) " + wanted.description.map { $0 == ":" ? "_" : String($0) }.joined() }

    /// The sockets that a supervisor hands over for the port by its name (`listen: systemd`).
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
    ///   - file: where the addresses are written.
    ///   - inherited: sockets that listen already, from a supervisor. One that has a wanted address is taken over.
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
                let descriptor = try Socket.listen(on: address, backlog: 1024, reusePort: false)
                let actual = Socket.localAddress(descriptor.raw) ?? address
                let raw = descriptor.release()
                opened.append(raw)
                sockets.append(ListeningSocket(raw: raw, port: port, wanted: address, address: actual, isNamed: false))
            } catch {
                for raw in opened { close(raw) }
                throw ListenError(address: address, cause: error, port: port, file: file)
            }
        }
        return sockets
    }

    private static func take(
        _ socket: InheritedSocket, at address: SocketAddress, _ port: ListenPort, isNamed: Bool
    ) -> ListeningSocket {
        _ = fcntl(socket.raw, F_SETFL, fcntl(socket.raw, F_GETFL) | O_NONBLOCK)
        return ListeningSocket(raw: socket.raw, port: port, wanted: address, address: address, isNamed: isNamed)
    }
}
