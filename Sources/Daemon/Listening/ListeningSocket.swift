import Configuration
import EventLoop
import Glibc

/// A socket that clients can connect to, on its way to the ``Listener`` that accepts them.
struct ListeningSocket: Sendable {
    let raw: CInt
    let port: ListenPort
    /// As it is configured.
    let wanted: Endpoint
    /// The port as the system chose it, if it was to choose.
    let place: Endpoint
    /// A supervisor's by its name (`listen: systemd`), which keeps it by itself.
    let isNamed: Bool
    /// A ``DoorSocket``.
    var isDoor = false

    /// Connections that wait to be accepted: as many as the kernel allows, which cuts this to net.core.somaxconn (4096 if
    /// nobody has changed it). One that finds the queue full is tried again by its client's kernel a second later.
    private static let queue: CInt = 65535

    /// A supervisor may keep it for the next process. The file of a Unix socket goes with this one.
    var isKept: Bool { !isNamed && address != nil }

    /// Nil of a Unix socket.
    var address: SocketAddress? { place.address }

    /// Whether it is where clients are awaited by a configuration with this place.
    func serves(_ place: Endpoint) -> Bool { wanted == place || self.place == place }

    func serves(_ address: SocketAddress) -> Bool { serves(.network(address)) }

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
                let descriptor = try Socket.listen(on: address, backlog: Self.queue, reusePort: false)
                let actual = Socket.localAddress(descriptor.raw) ?? address
                let raw = descriptor.release()
                opened.append(raw)
                sockets.append(ListeningSocket(raw: raw, port: port, wanted: .network(address), place: .network(actual), isNamed: false))
            } catch {
                for raw in opened { close(raw) }
                throw ListenError(address: address, cause: error, port: port, file: file)
            }
        }
        return sockets
    }

    /// Opens Unix sockets, or none. One that a process that is gone has left there is replaced.
    static func open(_ port: ListenPort, at paths: [String], _ access: SocketAccess, namedIn file: String) throws(SocketFileError)
        -> [ListeningSocket]
    {
        var sockets: [ListeningSocket] = []
        for path in paths {
            do throws(SystemError) {
                if UnixSocket.isAnswered(at: path) { throw SystemError(code: EADDRINUSE, call: "bind") }
                let raw = try UnixSocket.listen(at: path, backlog: Self.queue, mode: access.mode, group: access.group).release()
                sockets.append(ListeningSocket(raw: raw, port: port, wanted: .unix(path), place: .unix(path), isNamed: false))
            } catch {
                for socket in sockets { socket.discard() }
                throw SocketFileError(path: path, cause: error, port: port, file: file)
            }
        }
        return sockets
    }

    /// Opens the daemon's own socket, and replaces one left by an earlier process.
    static func door(at path: String, _ access: SocketAccess) throws(SystemError) -> ListeningSocket {
        let raw = try UnixSocket.listen(at: path, backlog: queue, mode: access.mode).release()
        return ListeningSocket(raw: raw, port: .proxy, wanted: .unix(path), place: .unix(path), isNamed: false, isDoor: true)
    }

    /// Lets others connect to a Unix socket from now on.
    func apply(_ access: SocketAccess) {
        guard let path = place.path else { return }
        try? UnixSocket.allow(mode: access.mode, group: access.group, at: path)
    }

    /// It is not wanted after all.
    func discard() {
        close(raw)
        if let path = place.path { unlink(path) }
    }

    private static func take(
        _ socket: InheritedSocket, at address: SocketAddress, _ port: ListenPort, isNamed: Bool
    ) -> ListeningSocket {
        _ = fcntl(socket.raw, F_SETFL, fcntl(socket.raw, F_GETFL) | O_NONBLOCK)
        return ListeningSocket(raw: socket.raw, port: port, wanted: .network(address), place: .network(address), isNamed: isNamed)
    }
}
