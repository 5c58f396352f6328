import PinproxyEventLoop
import PinproxySecurity

/// A proxy's connection to its signer. Its requests are not trusted.
final class SignerConnection: SocketHandler {
    /// Questions answered in one turn of the loop.
    private static let perTurn = 32

    private let socket: PacketSocket
    private lazy var source = SocketSource(loop: loop, descriptor: socket.raw, handler: self)
    private let loop: EventLoop
    private let answer: ([UInt8]) -> LeafAnswer
    private let ended: (SignerConnection) -> Void
    /// The answer that found no room. Nothing is read until it is sent.
    private var unsent: [UInt8]?

    /// - Parameter ended: called once; it usually releases the connection.
    init(
        _ socket: consuming Descriptor, loop: EventLoop, answer: @escaping ([UInt8]) -> LeafAnswer,
        ended: @escaping (SignerConnection) -> Void
    ) {
        self.socket = PacketSocket(socket)
        self.loop = loop
        self.answer = answer
        self.ended = ended
        source.wantsRead = true
    }

    deinit { source.invalidate() }

    func socketReady(_ readiness: Readiness) {
        if let unsent {
            guard readiness.contains(.write), send(unsent) else { return }
            self.unsent = nil
            source.wantsWrite = false
            source.wantsRead = true
        }
        for _ in 0..<Self.perTurn {
            switch socket.receive(longest: LeafRequest.longest) {
            case .wouldBlock: return
            case .closed: return end()
            case .packet(let packet): if !send(answer(packet).packet) { return }
            }
        }
    }

    /// - Returns: whether it was sent.
    private func send(_ packet: [UInt8]) -> Bool {
        switch socket.send(packet) {
        case .sent: return true
        case .wouldBlock:
            unsent = packet
            source.wantsRead = false
            source.wantsWrite = true
        case .failed: end()
        }
        return false
    }

    private func end() {
        source.invalidate()
        ended(self)
    }
}
