import EventLoop
import Glibc

/// The other end of a proxy that `pinproxy exec --start` has started: a socket of packets, over which the proxy says that it is ready,
/// and hears by its end that it is no longer needed.
package enum StarterWord {
    /// The first, with where it listens. The end instead: it couldn't start, and has said why.
    case ready([String])
    /// It goes on for other runs.
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

final class StarterWatch: SocketHandler {
    private let descriptor: CInt
    private let gone: () -> Void
    private var source: SocketSource?

    /// - Parameter descriptor: stays open, so that its end is the process's.
    init(loop: EventLoop, descriptor: CInt, listen: [String], gone: @escaping () -> Void) {
        self.descriptor = descriptor
        self.gone = gone
        source = SocketSource(loop: loop, descriptor: descriptor, handler: self)
        source?.wantsRead = true
        tell(.ready(listen))
    }

    deinit { source?.invalidate() }

    func tellKept() { tell(.kept) }

    /// Who is gone hears nothing.
    private func tell(_ word: StarterWord) { try? DescriptorMessage.send(word.bytes, over: descriptor) }

    func socketReady(_ readiness: Readiness) {
        // Nothing is ever said there: whatever comes is the end.
        source?.invalidate()
        gone()
    }
}
