import EventLoop
import Glibc

/// What a proxy and the main process of its service say to each other, over a socket of packets.
package enum SupervisorWord {
    /// By the main process: the next proxy is about to start.
    case handOver
    /// By the proxy: nothing that the next one needs is held any more.
    case handedOver

    package var bytes: [UInt8] {
        switch self {
        case .handOver: Array("hand over".utf8)
        case .handedOver: Array("handed over".utf8)
        }
    }
}

/// The proxy's end of the socket to the main process of its service.
final class SupervisorWatch: SocketHandler {
    private let descriptor: CInt
    private let asked: () -> Void
    private var source: SocketSource?

    /// - Parameters:
    ///   - descriptor: stays open, so that its end is the process's.
    ///   - asked: called once: the main process wants the proxy to hand over, or was killed.
    init(loop: EventLoop, descriptor: CInt, asked: @escaping () -> Void) {
        self.descriptor = descriptor
        self.asked = asked
        source = SocketSource(loop: loop, descriptor: descriptor, handler: self)
        source?.wantsRead = true
    }

    deinit { source?.invalidate() }

    /// One that was killed hears nothing.
    func tellHandedOver() { try? DescriptorMessage.send(SupervisorWord.handedOver.bytes, over: descriptor) }

    func socketReady(_ readiness: Readiness) {
        // Whatever comes asks for the same.
        source?.invalidate()
        source = nil
        asked()
    }
}
