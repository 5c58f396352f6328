import Glibc
import PinproxyEventLoop
import PinproxyTransport
import Testing

/// Two streams over socket pairs; the test holds the outer ends. The loop doesn't run: the test makes the calls that
/// readiness would make, in the order under test.
final class Wires {
    let loop: EventLoop
    let slabs: SlabPool
    let source: ByteStream
    let sink: ByteStream
    let from: CInt
    let to: CInt

    init(budget: BodyBudget = BodyBudget()) throws {
        slabs = SlabPool(budget: budget)
        loop = try EventLoop()
        let (from, inner) = try Socket.pair()
        let (to, outer) = try Socket.pair()
        self.from = from
        self.to = to
        source = ByteStream(loop: loop, descriptor: Descriptor(owning: inner))
        sink = ByteStream(loop: loop, descriptor: Descriptor(owning: outer))
    }

    deinit {
        close(from)
        close(to)
    }

    func send(_ bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        #expect(offer(bytes) == bytes.count)
    }

    /// Sends as much as the socket takes.
    func offer(_ bytes: [UInt8]) -> Int {
        max(0, Glibc.send(from, bytes, bytes.count, CInt(MSG_NOSIGNAL)))
    }

    func endSource() { shutdown(from, CInt(SHUT_WR)) }

    /// What has arrived at the sink's outer end.
    func arrived() -> [UInt8] { available(to) }
}

/// All that can be read now.
func available(_ descriptor: CInt, atMost limit: Int = .max) -> [UInt8] {
    var all: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: min(limit, 65536))
    while all.count < limit, case let count = recv(descriptor, &piece, piece.count, CInt(MSG_DONTWAIT)), count > 0 {
        all += piece[..<count]
    }
    return all
}

/// Whether the other end has been closed, with nothing left to read.
func isClosed(_ descriptor: CInt) -> Bool {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, CInt(MSG_DONTWAIT)) == 0
}
