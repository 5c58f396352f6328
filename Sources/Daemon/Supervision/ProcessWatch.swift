import PinproxyEventLoop

/// Messages of a proxy to the `pinproxy exec --start` that has started it, over a packet socket.
package enum StarterWord {
    /// The first, with where it listens. The end instead: it couldn't start, and has said why.
    case ready([String])
    /// It continues for other runs.
    case kept
    case taken(String)

    package var bytes: [UInt8] {
        switch self {
        case .ready(let listen): Array("ready \(listen.joined(separator: " "))".utf8)
        case .kept: Array("kept".utf8)
        case .taken(let cause): Array("taken \(cause)".utf8)
        }
    }

    package init?(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        let words = text.split(separator: " ").map(String.init)
        switch words.first {
        case "ready": self = .ready(Array(words.dropFirst()))
        case "kept": self = .kept
        case "taken": self = .taken(String(text.dropFirst("taken ".count)))
        default: return nil
        }
    }
}

/// Messages between a proxy and the main process of its service, over a packet socket.
package enum SupervisorWord: String {
    /// By the main process: the next proxy is about to start.
    case handOver = "hand over"
    /// Sent by the proxy: it has released all that the next one needs.
    case handedOver = "handed over"

    package var bytes: [UInt8] { Array(rawValue.utf8) }
}

/// The proxy's end of the socket to its starter, or to the main process of its service.
final class ProcessWatch: SocketHandler {
    private let descriptor: CInt
    private let called: () -> Void
    private var source: SocketSource?

    /// - Parameters:
    ///   - descriptor: stays open, so that its end is the process's.
    ///   - called: called once, when the other process sends anything or ends: both mean the same.
    init(loop: EventLoop, descriptor: CInt, called: @escaping () -> Void) {
        self.descriptor = descriptor
        self.called = called
        source = SocketSource(loop: loop, descriptor: descriptor, handler: self)
        source?.wantsRead = true
    }

    deinit { source?.invalidate() }

    /// A process that has ended hears nothing.
    func tell(_ message: [UInt8]) { try? DescriptorMessage.send(message, over: descriptor) }

    func socketReady(_ readiness: Readiness) {
        source?.invalidate()
        source = nil
        called()
    }
}
