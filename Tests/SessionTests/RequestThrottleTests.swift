import EventLoop
import Serialization
import Testing
import Transport

@testable import Session

@Suite(.timeLimit(.minutes(5))) struct RequestThrottleTests {
    /// What was written at one time, by a sink that takes some bytes of it.
    private final class Packets: ByteSink {
        private(set) var sizes: [Int] = []
        private(set) var bytes: [UInt8] = []
        private let most: Int

        init(most: Int) { self.most = most }

        func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome {
            let part = min(most, count)
            sizes.append(part)
            bytes += buffer.unread[..<part]
            buffer.consume(part)
            return part == count ? .done : .blocked
        }
    }

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

    /// The head passes at once with the first packet, then a packet after each pause; nothing in a pause.
    @Test func aMessageGoesOutInPackets() throws {
        let bench = try Workbench()
        let sink = Packets(most: .max)
        let message = (0..<47).map { UInt8($0) }
        var buffer = ByteBuffer(slabs: bench.slabs)
        message.withUnsafeBytes { buffer.append(copying: $0) }
        let throttle = RequestThrottle(
            Throttle(packet: 10, delay: .milliseconds(1)), sink: sink, headLength: 7, loop: bench.loop,
            owner: bench.stop
        ) { $0.isWanted = true }
        var isDone = false
        while !isDone {
            if case .done = throttle.write(buffer.count, from: &buffer) { isDone = true }
            // In a pause nobody gets on, whoever asks.
            let before = sink.bytes.count
            if !isDone { _ = throttle.write(buffer.count, from: &buffer) }
            #expect(sink.bytes.count == before)
            if !isDone { bench.run() }
        }
        #expect(sink.sizes == [17, 10, 10, 10] && sink.bytes == message)
    }

    /// A sink that takes less than a packet is asked for the rest before the pause.
    @Test func aPacketThatIsTakenInPartsIsOnePacket() throws {
        let bench = try Workbench()
        let sink = Packets(most: 4)
        var buffer = ByteBuffer(slabs: bench.slabs)
        [UInt8](repeating: 1, count: 25).withUnsafeBytes { buffer.append(copying: $0) }
        let waiter = Waiter(bench.stop)
        let throttle = RequestThrottle(
            Throttle(packet: 10, delay: .milliseconds(1)), sink: sink, headLength: 0, loop: bench.loop, owner: waiter
        ) { $0.paused() }
        for _ in 0..<100 where sink.bytes.count < 25 {
            let before = sink.bytes.count
            _ = throttle.write(buffer.count, from: &buffer)
            if sink.bytes.count == before { bench.run() }
        }
        #expect(sink.sizes == [4, 4, 2, 4, 4, 2, 4, 1] && waiter.pauses == 2)
    }
}
