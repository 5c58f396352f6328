import PinproxyEventLoop
import PinproxySerialization
import PinproxyTransport
import Testing

@testable import PinproxySession

@Suite(.timeLimit(.minutes(5))) struct RequestThrottleTests {
    /// Counts pauses, and ends the loop's run after each.
    private final class Waiter {
        private(set) var pauses = 0
        private let stop: Workbench.Stop

        init(_ stop: Workbench.Stop) { self.stop = stop }

        func paused() {
            pauses += 1
            stop.isWanted = true
        }
    }

    /// A packet after each pause; nothing in a pause.
    @Test func aBodyGoesOutInPackets() throws {
        let bench = try Workbench()
        let sink = BoundedSink()
        let body = (0..<47).map { UInt8($0) }
        let source = PieceSource(body)
        source.isEnded = true
        let throttle = RequestThrottle(
            Throttle(packet: 10, delay: .milliseconds(1)), source: source, loop: bench.loop, owner: bench.stop
        ) { $0.isWanted = true }
        while !sink.isEnded {
            _ = throttle.move(to: sink, readable: false)
            // Nothing moves during a pause, even when asked.
            let before = sink.bytes.count
            if !sink.isEnded { _ = throttle.move(to: sink, readable: false) }
            #expect(sink.bytes.count == before)
            if !sink.isEnded { bench.run() }
        }
        #expect(sink.sizes == [10, 10, 10, 10, 7] && sink.bytes == body)
    }

    /// A sink that takes less than a packet gets the rest of it before the pause.
    @Test func aPacketThatIsTakenInPartsIsOnePacket() throws {
        let bench = try Workbench()
        let sink = BoundedSink(room: 0)
        let source = PieceSource([UInt8](repeating: 1, count: 25))
        let waiter = Waiter(bench.stop)
        let throttle = RequestThrottle(
            Throttle(packet: 10, delay: .milliseconds(1)), source: source, loop: bench.loop, owner: waiter
        ) { $0.paused() }
        for _ in 0..<100 where sink.bytes.count < 25 {
            let before = sink.bytes.count
            sink.room = 4
            _ = throttle.move(to: sink, readable: false)
            if sink.bytes.count == before { bench.run() }
        }
        #expect(sink.sizes == [4, 4, 2, 4, 4, 2, 4, 1] && waiter.pauses == 2)
    }
}
