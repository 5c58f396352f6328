import Foundation
import PinproxyEventLoop
import PinproxyTransport
import Testing

/// Relays between two socket pairs; the test holds the outer ends.
@Suite struct RelayTests {
    private final class Bench: @unchecked Sendable {
        let client: CInt
        let origin: CInt
        private let inner: (CInt, CInt)
        private let loop: EventLoop.Handle
        private let ended = Mailbox<Relay.Ending>()
        // Touched on the loop's thread only.
        private var relay: Relay?
        private let slabs = SlabPool()

        init() throws {
            let (client, downstream) = try Self.pair()
            let (origin, upstream) = try Self.pair()
            self.client = client
            self.origin = origin
            inner = (downstream, upstream)
            let started = Mailbox<EventLoop.Handle>()
            Thread.detachNewThread {
                guard let loop = try? EventLoop() else { return }
                started.put(loop.handle)
                loop.run()
            }
            loop = started.take()
        }

        deinit {
            loop.post { $0.stop() }
            close(client)
            close(origin)
        }

        /// The outer end is blocking, the inner end isn't.
        private static func pair() throws -> (CInt, CInt) {
            let ends = try Socket.pair()
            _ = fcntl(ends.0, F_SETFL, 0)
            return ends
        }

        /// - Parameter patience: of a half-closed relay, in milliseconds.
        func start(received: String = "", patience: UInt64 = 50) {
            perform { [self] loop in
                var early = ByteBuffer(slabs: slabs)
                Array(received.utf8).withUnsafeBytes { early.append(copying: $0) }
                let relay = Relay(
                    loop: loop, downstream: ByteStream(loop: loop, descriptor: Descriptor(owning: inner.0)),
                    upstream: ByteStream(loop: loop, descriptor: Descriptor(owning: inner.1)),
                    received: early, answered: ByteBuffer(slabs: slabs), idleNanoseconds: patience * 1_000_000
                ) { [self] ending in
                    self.relay = nil
                    ended.put(ending)
                }
                self.relay = relay
                relay.start()
            }
        }

        func suspend() { perform { [self] _ in relay?.suspend() } }
        func resume() { perform { [self] _ in relay?.resume() } }
        func cancel() { perform { [self] _ in relay?.cancel(because: "a test") } }

        /// Waits until the relay has ended.
        func ending() -> Relay.Ending { ended.take() }

        var slabsInUse: Int {
            let count = Mailbox<Int>()
            perform { [self] _ in count.put(slabs.inUse) }
            return count.take()
        }

        /// Waits until the loop has handled everything.
        func settle() {
            for _ in 0..<2 { perform { _ in } }
        }

        private func perform(_ work: @escaping @Sendable (EventLoop) -> Void) {
            let done = Mailbox<Void>()
            loop.post { loop in
                work(loop)
                done.put(())
            }
            done.take()
        }
    }

    private func write(_ text: String, to descriptor: CInt) {
        _ = Foundation.write(descriptor, text, text.utf8.count)
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
        #expect(readAll(bench.origin) == "to the origin")
        #expect(readAll(bench.client) == "to the client")
        #expect(bench.ending() == .completed)
        #expect(bench.slabsInUse == 0)
    }

    @Test func sendsWhatWasReadBeforeItBegan() throws {
        let bench = try Bench()
        write(" and later", to: bench.client)
        shutdown(bench.client, CInt(SHUT_WR))
        shutdown(bench.origin, CInt(SHUT_WR))
        bench.start(received: "early")
        #expect(bench.ending() == .completed)
        #expect(readAll(bench.origin) == "early and later")
    }

    @Test func continuesInOneDirectionWhenTheOtherHasEnded() throws {
        let bench = try Bench()
        bench.start()
        shutdown(bench.client, CInt(SHUT_WR))
        var byte: UInt8 = 0
        #expect(read(bench.origin, &byte, 1) == 0, "the end is passed on as an end")
        write("late answer", to: bench.origin)
        shutdown(bench.origin, CInt(SHUT_WR))
        #expect(readAll(bench.client) == "late answer")
        #expect(bench.ending() == .completed)
    }

    /// The origin has answered and closed; the relay notices when a write fails.
    @Test func whatAnOriginSaidBeforeItFailedArrives() throws {
        let bench = try Bench()
        write("too large", to: bench.origin)
        shutdown(bench.origin, CInt(SHUT_RDWR))
        bench.start(received: "an upload")
        #expect(bench.ending() == .upstreamFailed(.socket(EPIPE)))
        #expect(readAll(bench.client) == "too large")
        #expect(bench.slabsInUse == 0)
    }

    @Test func aHalfClosedRelayIsNotKeptForEver() throws {
        let bench = try Bench()
        bench.start()
        shutdown(bench.client, CInt(SHUT_WR))
        #expect(bench.ending() == .timedOut)
        #expect(bench.slabsInUse == 0)
    }

    @Test func aSlowReaderStopsTheSourceAndNothingIsLost() throws {
        let bench = try Bench()
        bench.start()
        let piece = String(repeating: "0123456789", count: 1000)
        var sent = 0
        _ = fcntl(bench.client, F_SETFL, O_NONBLOCK)
        // Until neither the socket nor the relay takes more.
        var stuck = 0
        while stuck < 3 {
            let count = Foundation.write(bench.client, piece, piece.utf8.count)
            stuck = count > 0 ? 0 : stuck + 1
            sent += max(0, count)
            bench.settle()
        }
        #expect(bench.slabsInUse == 1, "one slab, however much the client has to send")
        shutdown(bench.client, CInt(SHUT_WR))
        shutdown(bench.origin, CInt(SHUT_WR))
        let received = readAll(bench.origin).utf8.count
        #expect(received == sent)
        #expect(bench.ending() == .completed)
    }

    /// Large transfers use a pipe without a slab: every byte arrives in order, including those that a stopped reader
    /// left in the pipe, and then the end.
    @Test func muchIsCarriedWholeInBothDirections() throws {
        let bench = try Bench()
        // On a busy machine a thread may stall long after one direction has ended.
        bench.start(patience: 60_000)
        let size = 24 << 20
        // Without a period, which could hide a lost or repeated piece.
        let bytes = (0..<UInt32(size / 4)).flatMap { number in
            withUnsafeBytes(of: number &* 2_654_435_761) { Array($0) }
        }
        let got = [Mailbox<[UInt8]>(), Mailbox<[UInt8]>()]
        for (index, end) in [bench.client, bench.origin].enumerated() {
            Thread.detachNewThread {
                var rest = bytes[...]
                while !rest.isEmpty {
                    let count = rest.withUnsafeBytes { Foundation.write(end, $0.baseAddress, $0.count) }
                    if count <= 0 { break }
                    rest = rest.dropFirst(count)
                }
                shutdown(end, CInt(SHUT_WR))
            }
            Thread.detachNewThread {
                var all: [UInt8] = []
                var piece = [UInt8](repeating: 0, count: 1 << 20)
                while case let count = read(end, &piece, piece.count), count > 0 { all += piece[..<count] }
                got[index].put(all)
            }
        }
        for mailbox in got {
            // Not compared within #expect, which would search two long arrays for their differences.
            let isWhole = mailbox.take() == bytes
            #expect(isWhole)
        }
        #expect(bench.ending() == .completed)
        #expect(bench.slabsInUse == 0)
    }

    /// Data that arrives during a suspension waits, and so does the half-closed relay's timeout.
    @Test func suspendedItMovesNothingAndResumedItLosesNothing() throws {
        let bench = try Bench()
        bench.start()
        write("before", to: bench.client)
        var bytes = [UInt8](repeating: 0, count: 6)
        #expect(recv(bench.origin, &bytes, 6, CInt(MSG_WAITALL)) == 6)
        bench.suspend()
        write(" and while", to: bench.client)
        write("answer", to: bench.origin)
        shutdown(bench.client, CInt(SHUT_WR))
        shutdown(bench.origin, CInt(SHUT_WR))
        bench.settle()
        for descriptor in [bench.origin, bench.client] {
            #expect(recv(descriptor, &bytes, 1, CInt(MSG_DONTWAIT)) < 0 && errno == EAGAIN)
        }
        bench.resume()
        #expect(readAll(bench.origin) == " and while")
        #expect(readAll(bench.client) == "answer")
        #expect(bench.ending() == .completed)
        #expect(bench.slabsInUse == 0)
    }

    @Test func aSuspendedRelayKeepsNoTime() throws {
        let bench = try Bench()
        bench.start()
        shutdown(bench.client, CInt(SHUT_WR))
        var byte: UInt8 = 0
        #expect(read(bench.origin, &byte, 1) == 0)
        bench.suspend()
        // Another one of the same patience is given up meanwhile.
        let other = try Bench()
        other.start()
        shutdown(other.client, CInt(SHUT_WR))
        #expect(other.ending() == .timedOut)
        bench.resume()
        write("late", to: bench.origin)
        shutdown(bench.origin, CInt(SHUT_WR))
        #expect(readAll(bench.client) == "late")
        #expect(bench.ending() == .completed)
    }

    @Test func cancellingResetsBothSides() throws {
        let bench = try Bench()
        bench.start()
        bench.cancel()
        #expect(bench.ending() == .cancelled(because: "a test"))
    }
}

/// One value at a time from one thread to another that waits for it.
private final class Mailbox<Value>: @unchecked Sendable {
    private let isThere = DispatchSemaphore(value: 0)
    private let lock = NSLock()
    private var values: [Value] = []

    func put(_ value: Value) {
        lock.withLock { values.append(value) }
        isThere.signal()
    }

    func take() -> Value {
        isThere.wait()
        return lock.withLock { values.removeFirst() }
    }
}
