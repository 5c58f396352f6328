internal import Glibc
internal import PinproxyEventLoop
internal import PinproxyTransport

/// Answers questions for addresses that come as datagrams (RFC 1035 section 4.2.1).
final class NameDatagrams: SocketHandler {
    private static let longest = 512
    /// Most messages read in one turn.
    private static let perTurn = 64
    /// Questions that wait for the proxy; more are not answered, and asked again.
    private static let waitingLimit = 1024

    private let names: Names
    private let raw: CInt
    private var source: SocketSource?
    private var waiting = 0

    /// - Parameter raw: taken over.
    init(loop: EventLoop, raw: CInt, names: Names) {
        self.names = names
        self.raw = raw
        source = SocketSource(loop: loop, descriptor: raw, handler: self)
        source?.wantsRead = true
    }

    deinit {
        source?.invalidate()
        close(raw)
    }

    func socketReady(_ readiness: Readiness) {
        for _ in 0..<Self.perTurn {
            guard let arrival = DatagramSocket.receive(raw, longest: 4096) else { return }
            guard waiting < Self.waitingLimit else { continue }
            waiting += 1
            names.answer(arrival.bytes, longest: Self.longest) { [weak self] bytes in
                guard let self else { return }
                waiting -= 1
                if let bytes { DatagramSocket.answer(bytes, to: arrival, over: raw) }
            }
        }
    }
}

extension Names {
    /// - Parameter answered: called once, with the answer, or nil for none.
    func answer(_ message: [UInt8], longest: Int, _ answered: @escaping ([UInt8]?) -> Void) {
        switch NameMessage.parse(message) {
        case .nothing: answered(nil)
        case .answer(let bytes): answered(bytes)
        case .question(let question):
            // No host, and nothing to be asked for.
            guard !question.name.isEmpty else { return answered(question.answer([], longest: longest)) }
            addresses(of: question.name) { answer in
                switch answer {
                case .addresses(let addresses): answered(question.answer(addresses, longest: longest))
                case .unknown: answered(question.answer(.unknownName))
                case .failed, .refused: answered(question.answer(.failed))
                }
            }
        }
    }
}

/// Messages over a connection: each follows its length (section 4.2.2).
struct NameStream {
    private static let longest = 65535

    /// Takes the first complete message out of the received bytes; nil: none yet.
    static func next(_ received: inout ByteBuffer) -> [UInt8]? {
        let unread = received.unread
        guard unread.count >= 2 else { return nil }
        let length = Int(unread[0]) << 8 | Int(unread[1])
        guard unread.count >= 2 + length else { return nil }
        let message = Array(unread[2..<(2 + length)])
        received.consume(2 + length)
        return message
    }

    static func answer(_ message: [UInt8], by names: Names, _ answered: @escaping ([UInt8]?) -> Void) {
        names.answer(message, longest: longest) { bytes in
            answered(
                bytes.map { [UInt8(truncatingIfNeeded: $0.count >> 8), UInt8(truncatingIfNeeded: $0.count)] + $0 })
        }
    }
}
