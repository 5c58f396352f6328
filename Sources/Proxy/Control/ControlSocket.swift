package import EventLoop
import Glibc
import Logging
import Session
import Transport

/// `control.sock` in the state directory: HTTP/1.1 and JSON for the commands of the user whose proxy it is, and
/// for root. Served by the main loop, so that no request of a client of the proxy waits for it.
package final class ControlSocket: SocketHandler {
    /// Clients at one time; for one more the one goes that has kept a request back for longest.
    static let clientLimit = 64
    private static let backlog: CInt = 128
    /// For a request's arrival, and for an answer's being taken.
    private static let patience: Duration = .seconds(10)
    /// How long accepting pauses when the process has no descriptors left.
    private static let pauseNanoseconds: UInt64 = 100_000_000

    private let path: String
    private let loop: EventLoop
    private let session: LoopSession
    private let settings = HTTP1ServerSettings()
    private let logger: Logger
    private let answer: ControlConnection.Answer
    private let listener: CInt
    private var source: SocketSource?
    private var pause: Timer?
    /// The one that came first is the first.
    private var clients: [ControlConnection] = []

    package static func path(in stateDirectory: String) -> String { stateDirectory + "/control.sock" }

    init(
        path: String, loop: EventLoop, session: LoopSession, logger: Logger,
        answer: @escaping ControlConnection.Answer
    ) throws(SystemError) {
        self.path = path
        self.loop = loop
        self.session = session
        self.logger = logger
        self.answer = answer
        settings.idle = Self.patience
        settings.idleNanoseconds = Self.patience.nanoseconds
        settings.requestNanoseconds = Self.patience.nanoseconds
        settings.requestHead = 16 << 10
        listener = try UnixSocket.listen(at: path, backlog: Self.backlog).release()
        source = SocketSource(loop: loop, descriptor: listener, handler: self)
        source?.wantsRead = true
    }

    deinit { stop() }

    /// Takes the name away and ends all connections.
    func stop() {
        guard let source else { return }
        pause = nil
        source.invalidate()
        self.source = nil
        Glibc.close(listener)
        unlink(path)
        for client in clients { client.stop() }
    }

    package func socketReady(_ readiness: Readiness) {
        do throws(SystemError) {
            // Some in a turn: a crowd must not keep the loop from its other work.
            for _ in 0..<16 {
                guard let raw = try UnixSocket.accept(listener) else { return }
                accepted(Descriptor(owning: raw))
            }
        } catch {
            // Level-triggered: without a pause, a lack of descriptors would spin.
            source?.wantsRead = false
            pause = Timer(loop: loop, afterNanoseconds: Self.pauseNanoseconds) { [unowned self] in
                source?.wantsRead = true
            }
            logger.warning("control.failed", metadata: ["cause": "\(error)", "effect": "a command has to wait"])
        }
    }

    private func accepted(_ socket: consuming Descriptor) {
        let peer = UnixSocket.peer(of: socket.raw)
        guard let peer, peer.user == 0 || peer.user == geteuid() else {
            return deny(socket, peer)
        }
        if clients.count >= Self.clientLimit { (clients.first { !$0.isAsking } ?? clients.first)?.stop() }
        let client = ControlConnection(
            stream: ByteStream(loop: loop, descriptor: socket), session: session, settings: settings,
            peer: ControlPeer(peer), answer: answer
        ) { [unowned self] client in
            clients.removeAll { $0 === client }
        }
        clients.append(client)
        client.start()
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
