import EventLoop
import Glibc

/// Accepts clients on one address and hands each to the least loaded worker.
///
/// One listener and not SO_REUSEPORT: measured with two workers and new TLS connections, both cost the
/// same (660 µs of processor time a connection, three runs of each in turn, ± 50). But SO_REUSEPORT
/// spreads by a hash of the addresses, so that a machine's few long-lived clients may share one worker
/// while another rests.
final class Listener: SocketHandler {
    /// How long accepting pauses when the process has no descriptors left.
    private static let pauseNanoseconds: UInt64 = 100_000_000
    /// Connections accepted in one turn, before others get theirs.
    private static let perTurn = 64

    let address: SocketAddress
    private let loop: EventLoop
    private var source: SocketSource?
    private var raw: CInt
    private let hasRoom: () -> Bool
    private let accepted: (consuming Descriptor, SocketAddress) -> Void
    private let failed: (SystemError) -> Void
    private var pause: Timer?

    /// - Parameters:
    ///   - hasRoom: asked before each connection is accepted; after false, call ``resume()``.
    ///   - accepted: takes each connection.
    ///   - failed: told why accepting pauses for a moment.
    init(
        loop: EventLoop, on wanted: SocketAddress, hasRoom: @escaping () -> Bool,
        accepted: @escaping (consuming Descriptor, SocketAddress) -> Void,
        failed: @escaping (SystemError) -> Void
    ) throws(SystemError) {
        self.loop = loop
        self.hasRoom = hasRoom
        self.accepted = accepted
        self.failed = failed
        let descriptor = try Socket.listen(on: wanted, backlog: 1024, reusePort: false)
        address = Socket.localAddress(descriptor.raw) ?? wanted
        raw = descriptor.release()
        source = SocketSource(loop: loop, descriptor: raw, handler: self)
    }

    deinit { stop() }

    func resume() { source?.wantsRead = true }

    func stop() {
        pause = nil
        source?.invalidate()
        source = nil
        if raw >= 0 { Glibc.close(raw) }
        raw = -1
    }

    func socketReady(_ readiness: Readiness) {
        for _ in 0..<Self.perTurn {
            guard hasRoom() else {
                source?.wantsRead = false
                return
            }
            switch Socket.accept(raw) {
            case .accepted(let descriptor, let peer): accepted(descriptor, peer)
            case .wouldBlock: return
            case .failed(let error):
                // Level-triggered: without a pause, a lack of descriptors would spin.
                source?.wantsRead = false
                failed(error)
                pause = Timer(loop: loop, afterNanoseconds: Self.pauseNanoseconds) { [unowned self] in resume() }
                return
            }
        }
    }
}
