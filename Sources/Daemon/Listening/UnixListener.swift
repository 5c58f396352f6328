import Configuration
import EventLoop
import Glibc

/// Accepts connections at a path.
final class UnixListener: SocketHandler {
    private static let backlog: CInt = 128
    /// How long accepting pauses when the process has no descriptors left.
    private static let pauseNanoseconds: UInt64 = 100_000_000
    /// Connections accepted in one turn: a crowd must not keep the loop from its other work.
    private static let perTurn = 16

    let path: String
    private let loop: EventLoop
    private let accepted: (consuming Descriptor) -> Void
    private let failed: (SystemError) -> Void
    private let listener: CInt
    private var source: SocketSource?
    private var pause: Timer?

    /// - Parameters:
    ///   - accepted: takes each connection.
    ///   - failed: told why accepting pauses for a moment.
    init(
        path: String, access: SocketAccess = SocketAccess(), loop: EventLoop, accepted: @escaping (consuming Descriptor) -> Void,
        failed: @escaping (SystemError) -> Void
    ) throws(SystemError) {
        self.path = path
        self.loop = loop
        self.accepted = accepted
        self.failed = failed
        listener = try UnixSocket.listen(at: path, backlog: Self.backlog, mode: access.mode, group: access.group).release()
        source = SocketSource(loop: loop, descriptor: listener, handler: self)
        source?.wantsRead = true
    }

    deinit { stop() }

    /// Lets others connect from now on.
    func apply(_ access: SocketAccess) {
        try? UnixSocket.allow(mode: access.mode, group: access.group, at: path)
    }

    /// Takes the name away.
    func stop() {
        guard let source else { return }
        pause = nil
        source.invalidate()
        self.source = nil
        Glibc.close(listener)
        unlink(path)
    }

    func socketReady(_ readiness: Readiness) {
        do throws(SystemError) {
            for _ in 0..<Self.perTurn {
                guard let raw = try UnixSocket.accept(listener) else { return }
                accepted(Descriptor(owning: raw))
            }
        } catch {
            // Level-triggered: without a pause, a lack of descriptors would spin.
            source?.wantsRead = false
            pause = Timer(loop: loop, owner: self, afterNanoseconds: Self.pauseNanoseconds) {
                $0.source?.wantsRead = true
            }
            failed(error)
        }
    }
}
