import Clients
import EventLoop
import Glibc
import Logging
import Session

/// `control.sock` in the state directory: HTTP/1.1 and JSON for the commands of the user whose proxy it is, and
/// for root. Served by the main loop, so that no request of a client of the proxy waits for it.
package final class ControlSocket {
    private let logger: Logger
    private let clients: ControlClients
    private var listener: UnixListener?

    package static func place(in stateDirectory: String) -> StateSocket { StateSocket("control.sock", in: stateDirectory) }

    init(
        path: String, loop: EventLoop, session: LoopSession, logger: Logger,
        answer: @escaping ControlConnection.Answer, feed: @escaping () -> LiveFeed?
    ) throws(SystemError) {
        self.logger = logger
        clients = ControlClients(loop: loop, session: session, share: ControlClients.limit / 2, answer: answer, feed: feed)
        listener = try UnixListener(path: path, loop: loop) { [weak self] socket in
            self?.accepted(socket)
        } failed: { error in
            logger.warning("control.failed", metadata: ["cause": "\(error)", "effect": "a command has to wait"])
        }
    }

    /// Takes the name away and ends all connections.
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

    /// Says no, in the room that every socket's buffer has, and waits for nothing.
    private func deny(_ socket: consuming Descriptor, _ peer: UnixSocket.Peer?) {
        let user = peer.map { ControlPeer($0).description } ?? "an unknown user"
        let bytes = ControlResponse.problem(
            403, "\(user) may not control this proxy: it obeys its own user and root"
        ).bytes(keepAlive: false)
        send(socket.raw, bytes, bytes.count, CInt(MSG_NOSIGNAL))
        logger.warning("control.refused", metadata: ["cause": "\(user) may not control this proxy"])
    }
}
