import Glibc
import Logging
import PinproxyEventLoop

/// Accepts clients on one address, or at one Unix socket.
///
/// One listener and not SO_REUSEPORT: measured with two workers and new TLS connections, both cost the same (660 µs of
/// processor time a connection, ± 50). But SO_REUSEPORT hashes addresses: few long-lived clients may share one worker.
final class Listener: SocketHandler {
    /// Pause when no descriptors are left.
    private static let pauseNanoseconds: UInt64 = 100_000_000
    /// Connections accepted in one turn of the loop.
    private static let perTurn = 64

    let wanted: Endpoint
    private let loop: EventLoop
    private var source: SocketSource?
    private var raw: CInt
    private let hasRoom: () -> Bool
    private let mustWait: () -> Void
    private let accepted: (consuming Descriptor, Endpoint, Bool) -> Void
    private let failed: (SystemError) -> Void
    private var pause: Timer?
    /// The next clients have waited.
    private var isLate = false

    /// - Parameters:
    ///   - socket: taken over.
    ///   - hasRoom: asked before each connection is accepted.
    ///   - mustWait: called when a client finds no room; call ``resume()`` when there is.
    ///   - accepted: takes each connection, and whether it has waited.
    ///   - failed: called when accepting pauses.
    init(
        loop: EventLoop, socket: ListeningSocket, hasRoom: @escaping () -> Bool = { true },
        mustWait: @escaping () -> Void = {},
        accepted: @escaping (consuming Descriptor, Endpoint, Bool) -> Void,
        failed: @escaping (SystemError) -> Void
    ) {
        self.loop = loop
        self.hasRoom = hasRoom
        self.mustWait = mustWait
        self.accepted = accepted
        self.failed = failed
        raw = socket.raw
        wanted = socket.wanted
        source = SocketSource(loop: loop, descriptor: raw, handler: self)
    }

    /// Accepts commands at a socket of the state directory.
    static func own(
        at path: String, mode: UInt32 = 0o600, loop: EventLoop, logger: Logger,
        accepted: @escaping (consuming Descriptor) -> Void
    ) throws(SystemError) -> Listener {
        let socket = try ListeningSocket.own(at: path, mode: mode)
        let listener = Listener(loop: loop, socket: socket, accepted: { socket, _, _ in accepted(socket) }) { error in
            logger.warning("control.failed", metadata: ["cause": "\(error)", "effect": "commands have to wait"])
        }
        listener.resume()
        return listener
    }

    deinit { stop() }

    func resume() { source?.wantsRead = true }

    func stop() {
        pause = nil
        source?.invalidate()
        source = nil
        guard raw >= 0 else { return }
        Glibc.close(raw)
        raw = -1
        if let path = wanted.path { unlink(path) }
    }

    private func accept() -> Socket.AcceptResult {
        guard wanted.path != nil else { return Socket.accept(raw) }
        do throws(SystemError) {
            guard let socket = try UnixSocket.accept(raw) else { return .wouldBlock }
            // A Unix client has no address.
            return .accepted(Descriptor(owning: socket), peer: nil)
        } catch {
            return .failed(error)
        }
    }

    func socketReady(_ readiness: Readiness) {
        guard hasRoom() else {
            isLate = true
            source?.wantsRead = false
            return mustWait()
        }
        for _ in 0..<Self.perTurn {
            // A waiting client makes the socket ready again.
            guard hasRoom() else { return }
            switch accept() {
            case .accepted(let descriptor, let peer): accepted(descriptor, peer.map(Endpoint.network) ?? wanted, isLate)
            case .wouldBlock:
                isLate = false
                return
            case .failed(let error):
                isLate = true
                // Level-triggered: without a pause, a lack of descriptors would spin.
                source?.wantsRead = false
                failed(error)
                pause = Timer(loop: loop, owner: self, afterNanoseconds: Self.pauseNanoseconds) { $0.resume() }
                return
            }
        }
    }
}
