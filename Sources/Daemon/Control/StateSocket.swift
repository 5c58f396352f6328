import Glibc
import Logging
import PinproxyClients
package import PinproxyEventLoop
import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// A socket of the state directory, for commands: links aren't followed.
package struct StateSocket: Sendable {
    private let directory: TrustedDirectory
    private let name: String

    init(_ name: String, in directory: String) {
        self.name = name
        self.directory = TrustedDirectory(directory)
    }

    package var path: String { "\(directory.path)/\(name)" }

    /// Blocks at most `seconds` for each read and write.
    func connect(seconds: Int) throws(ControlFailure) -> Descriptor {
        try connect { (path) throws(SystemError) in try UnixSocket.connect(to: path, seconds: seconds) }
    }

    package func connectAtOnce() throws(ControlFailure) -> Descriptor {
        try connect { (path) throws(SystemError) in try UnixSocket.connectAtOnce(to: path) }
    }

    private func connect(
        _ body: (_ path: String) throws(SystemError) -> Descriptor
    ) throws(ControlFailure) -> Descriptor {
        let socket: HeldSocket
        do throws(FileProblem) {
            socket = try directory.socket(name)
        } catch .system(let code) {
            throw .unreachable(SystemError(code: code, call: "open"))
        } catch {
            throw .untrusted("\(error)")
        }
        do throws(SystemError) {
            return try body(socket.path)
        } catch {
            throw .unreachable(error)
        }
    }
}

/// `control.sock` in the state directory: HTTP/1.1 and JSON for the proxy's own user and root. On the main loop.
package final class ControlSocket {
    private let logger: Logger
    private let clients: ControlClients
    private var listener: Listener?

    package static func place(in stateDirectory: String) -> StateSocket {
        StateSocket("control.sock", in: stateDirectory)
    }

    init(
        path: String, loop: EventLoop, session: LoopSession, logger: Logger,
        answer: @escaping ControlConnection.Answer, feed: @escaping () -> LiveFeed?
    ) throws(SystemError) {
        self.logger = logger
        clients = ControlClients(
            loop: loop, session: session, share: ControlClients.limit / 2, answer: answer, feed: feed)
        listener = try .own(at: path, loop: loop, logger: logger) { [weak self] in self?.accepted($0) }
    }

    /// Removes the socket and ends all connections.
    func stop() {
        listener?.stop()
        listener = nil
        clients.stop()
    }

    private func accepted(_ socket: consuming Descriptor) {
        let peer = UnixSocket.peer(of: socket.raw)
        guard let peer, peer.user == 0 || peer.user == geteuid() else { return deny(socket, peer) }
        clients.serve(socket, of: .user(peer.user), through: .socket(ControlPeer(peer)))
    }

    /// Refuses without waiting: a new socket's buffer has room.
    private func deny(_ socket: consuming Descriptor, _ peer: UnixSocket.Peer?) {
        let user = peer.map { ControlPeer($0).description } ?? "an unknown user"
        let bytes = ControlResponse.problem(
            403, "\(user) may not control this proxy: it obeys its own user and root"
        ).bytes(keepAlive: false)
        send(socket.raw, bytes, bytes.count, CInt(MSG_NOSIGNAL))
        logger.warning("control.refused", metadata: ["cause": "\(user) may not control this proxy"])
    }
}

/// `door.sock` in the state directory: where a command's network ends (`pinproxy exec --isolated`, `--transparent`).
/// Clients count as remote (``Arrival/place``), and reach no loopback service. Programs in such a network can't leave
/// it otherwise.
package enum DoorSocket {
    package static func place(in stateDirectory: String) -> StateSocket { StateSocket("door.sock", in: stateDirectory) }
}

/// Why a running proxy gave no useful answer.
package enum ControlFailure: Error, Sendable, Equatable {
    /// No process listens, or this user may not connect.
    case unreachable(SystemError)
    /// Another user could have put it there.
    case untrusted(String)
    /// Another process listens there; no request was sent.
    case stranger(process: Int32)
    case refused(status: Int, cause: String)
    case silent
    case ended
    case broken(String)
}
