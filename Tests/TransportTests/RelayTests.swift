import EventLoop
import Glibc
import Testing
import Transport

/// Relays between two socket pairs; the test holds the outer ends.
@Suite struct RelayTests {
    private final class Bench {
        let loop: EventLoop
        let slabs = SlabPool()
        let client: CInt
        let origin: CInt
        private let inner: (CInt, CInt)
        private(set) var ending: Relay.Ending?
        private(set) var relay: Relay?

        init() throws {
            loop = try EventLoop()
            let (client, downstream) = try Self.pair()
            let (origin, upstream) = try Self.pair()
            self.client = client
            self.origin = origin
            inner = (downstream, upstream)
        }

        deinit {
            close(client)
            close(origin)
        }

        private static func pair() throws -> (CInt, CInt) {
            var ends: [CInt] = [-1, -1]
            let made = socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0, &ends)
            try #require(made == 0)
            return (ends[0], ends[1])
        }

        func start(received: String = "") {
            var early = ByteBuffer(slabs: slabs)
            Array(received.utf8).withUnsafeBytes { early.append(copying: $0) }
            let relay = Relay(
                loop: loop, downstream: ByteStream(loop: loop, descriptor: Descriptor(owning: inner.0)),
                upstream: ByteStream(loop: loop, descriptor: Descriptor(owning: inner.1)),
                received: early, answered: ByteBuffer(slabs: slabs), idleNanoseconds: 50_000_000
            ) { [unowned self] in
                ending = $0
                loop.stop()
            }
            self.relay = relay
            relay.start()
        }

        /// Runs the loop until the relay has ended, and lets the relay go.
        func finish() -> Relay.Ending? {
            if ending == nil { loop.run() }
            relay = nil
            return ending
        }

        /// Runs the loop until nothing is left to carry.
        func settle() {
            loop.handle.post { loop in loop.handle.post { $0.stop() } }
            loop.run()
        }
    }

    private func write(_ text: String, to descriptor: CInt) {
        _ = Glibc.write(descriptor, text, text.utf8.count)
    }

    private func readAll(_ descriptor: CInt) -> String {
        var text = ""
        var bytes = [UInt8](repeating: 0, count: 4096)
        while case let count = read(descriptor, &bytes, bytes.count), count > 0 {
            text += String(decoding: bytes[..<count], as: UTF8.self)
        }
        return text
    }

    @Test func carriesBothWaysAndEndsWithBoth() throws {
        let bench = try Bench()
        write("to the origin", to: bench.client)
        write("to the client", to: bench.origin)
        shutdown(bench.client, CInt(SHUT_WR))
        shutdown(bench.origin, CInt(SHUT_WR))
        bench.start()
        #expect(bench.finish() == .completed)
        #expect(readAll(bench.origin) == "to the origin")
        #expect(readAll(bench.client) == "to the client")
        #expect(bench.slabs.inUse == 0)
    }

    @Test func sendsWhatWasReadBeforeItBegan() throws {
        let bench = try Bench()
        write(" and later", to: bench.client)
        shutdown(bench.client, CInt(SHUT_WR))
        shutdown(bench.origin, CInt(SHUT_WR))
        bench.start(received: "early")
        #expect(bench.finish() == .completed)
        #expect(readAll(bench.origin) == "early and later")
    }

    @Test func goesOnInOneDirectionWhenTheOtherHasEnded() throws {
        let bench = try Bench()
        bench.start()
        shutdown(bench.client, CInt(SHUT_WR))
        bench.settle()
        var byte: UInt8 = 0
        #expect(read(bench.origin, &byte, 1) == 0, "the end is passed on as an end")
        write("late answer", to: bench.origin)
        bench.settle()
        #expect(readAll(bench.client) == "late answer")
        shutdown(bench.origin, CInt(SHUT_WR))
        #expect(bench.finish() == .completed)
    }

    @Test func aHalfClosedRelayIsNotKeptForEver() throws {
        let bench = try Bench()
        bench.start()
        shutdown(bench.client, CInt(SHUT_WR))
        #expect(bench.finish() == .timedOut)
        #expect(bench.slabs.inUse == 0)
    }

    @Test func aSlowReaderStopsTheSourceAndNothingIsLost() throws {
        let bench = try Bench()
        bench.start()
        let piece = String(repeating: "0123456789", count: 1000)
        var sent = 0
        // Until neither the socket nor the relay takes any more.
        var stuck = 0
        while stuck < 3 {
            let count = Glibc.write(bench.client, piece, piece.utf8.count)
            if count > 0 {
                sent += count
                stuck = 0
            } else {
                stuck += 1
            }
            bench.settle()
        }
        #expect(bench.slabs.inUse == 1, "one slab, however much the client has to send")
        shutdown(bench.client, CInt(SHUT_WR))
        shutdown(bench.origin, CInt(SHUT_WR))
        var received = 0
        var bytes = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = read(bench.origin, &bytes, bytes.count)
            if count == 0 { break }
            if count > 0 { received += count } else { bench.settle() }
        }
        #expect(received == sent)
        #expect(bench.finish() == .completed)
    }

    @Test func cancellingResetsBothSides() throws {
        let bench = try Bench()
        bench.start()
        bench.relay?.cancel()
        #expect(bench.finish() == .cancelled)
    }
}
