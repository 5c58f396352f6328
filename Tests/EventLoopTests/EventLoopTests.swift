import Glibc
import Synchronization
import Testing

@testable import PinproxyEventLoop

@Suite struct EventLoopTests {
    @Test func stopBeforeRunMakesRunReturnAtOnce() throws {
        let loop = try EventLoop()
        loop.stop()
        run(loop)
    }

    @Test func postsFromManyThreadsAllRunEachThreadsInOrder() throws {
        let loop = try EventLoop()
        let handle = loop.handle
        let seen = Mutex<[Int: [Int]]>([:])
        let remaining = Atomic(4 * 500)
        let threads = (0..<4).map { thread in
            PosixThread {
                for number in 0..<500 {
                    handle.post { loop in
                        seen.withLock { $0[thread, default: []].append(number) }
                        if remaining.subtract(1, ordering: .relaxed).newValue == 0 { loop.stop() }
                    }
                }
            }
        }
        run(loop)
        for thread in threads { thread.join() }
        #expect(seen.withLock { $0 } == Dictionary(uniqueKeysWithValues: (0..<4).map { ($0, Array(0..<500)) }))
    }

    /// Each post finds the loop asleep, or about to sleep.
    @Test func noPostIsLostAtTheMomentTheLoopFallsAsleep() throws {
        let loop = try EventLoop()
        let handle = loop.handle
        let turn = Atomic(0)
        let thread = PosixThread {
            for number in 1...5_000 {
                handle.post { _ in turn.store(number, ordering: .releasing) }
                while turn.load(ordering: .acquiring) != number { sched_yield() }
            }
            handle.post { $0.stop() }
        }
        run(loop)
        thread.join()
        #expect(turn.load(ordering: .relaxed) == 5_000)
    }

    @Test func postsThatPostThemselvesLetTimersExpire() throws {
        final class Stopper {
            let loop: EventLoop
            init(_ loop: EventLoop) { self.loop = loop }
        }
        let loop = try EventLoop()
        let stopper = Stopper(loop)
        let deadline = Deadline(loop: loop, owner: stopper) { $0.loop.stop() }
        deadline.set(afterNanoseconds: 1)
        @Sendable func again(_ loop: EventLoop) { loop.handle.post(again) }
        loop.handle.post(again)
        run(loop)
        withExtendedLifetime(deadline) {}
    }

    @Test func anAcceptedPostRunsEvenIfTheLoopIsStoppedBeforeItALaterOneIsRefused() throws {
        let loop = try EventLoop()
        let handle = loop.handle
        let ran = Mutex<[String]>([])
        #expect(handle.post { $0.stop() })
        #expect(handle.post { _ in ran.withLock { $0.append("same batch") } })
        let posted = handle.post { loop in
            ran.withLock { $0.append(loop.handle.post { _ in } ? "accepted" : "refused") }
        }
        #expect(posted)
        run(loop)
        #expect(ran.withLock { $0 } == ["same batch", "accepted"])
        #expect(!handle.post { _ in Issue.record("a refused post ran") })
    }

    @Test func aPostToALoopThatIsGoneIsRefusedAndLetsItsCapturesGo() throws {
        let handle: EventLoop.Handle
        do { handle = try EventLoop().handle }
        final class Capture: Sendable {}
        weak var gone: Capture?
        do {
            let capture = Capture()
            gone = capture
            #expect(!handle.post { _ in _ = capture })
        }
        #expect(gone == nil)
    }

    @Test func workPutOffRunsAfterTheCallbackHasReturnedInOrderBeforeTheNextOne() throws {
        let loop = try EventLoop()
        var order: [String] = []
        let pair = try SocketPair()
        defer { pair.close() }
        let handler = ClosureHandler()
        let source = SocketSource(loop: loop, descriptor: pair.a, handler: handler)
        handler.ready = { readiness in
            if readiness.contains(.write) {
                loop.afterThisTurn { order.append("put off 1") }
                loop.afterThisTurn {
                    order.append("put off 2")
                    loop.afterThisTurn {
                        order.append("put off by work")
                        loop.stop()
                    }
                }
                order.append("callback")
                source.wantsWrite = false
            } else {
                order.append("read")
                source.wantsRead = false
            }
        }
        source.wantsWrite = true
        // Ready only after the first callback: work that defers more work must not starve other sources.
        source.wantsRead = true
        send(1, to: pair.b)
        run(loop)
        #expect(order.filter { $0 != "read" } == ["callback", "put off 1", "put off 2", "put off by work"])
        let read = try #require(order.firstIndex(of: "read"))
        #expect(read < order.count - 1)
    }

    @Test func workPutOffOutsideOfACallbackRunsTooAndWhatIsLeftAtTheEndIsLetGo() throws {
        let loop = try EventLoop()
        var rounds = 0
        final class Capture {}
        weak var gone: Capture?
        do {
            let capture = Capture()
            gone = capture
            func again() {
                _ = capture
                rounds += 1
                if rounds == 10 { loop.stop() }
                loop.afterThisTurn { again() }
            }
            loop.afterThisTurn { again() }
        }
        run(loop)
        #expect(rounds >= 10)
        #expect(gone == nil)
    }

    @Test func theTimeStandsStillWithinATurnAndContinuesInTheNext() throws {
        let loop = try EventLoop()
        var times: [MonotonicTime] = []
        loop.handle.post { loop in
            let first = loop.now
            while MonotonicTime.now() == first {}
            #expect(loop.now == first)
        }
        loop.afterThisTurn {
            times.append(loop.now)
            while MonotonicTime.now() == times[0] {}
            #expect(loop.now == times[0])
            loop.afterThisTurn {
                times.append(loop.now)
                loop.stop()
            }
        }
        run(loop)
        #expect(times.count == 2 && times[0] < times[1])
        let outside = loop.now
        while MonotonicTime.now() == outside {}
        #expect(loop.now > outside)
    }

    @Test func aBoundValueCrossesThreadsAndComesBack() throws {
        final class Plain { var count = 0 }
        let loop = try EventLoop()
        let handle = loop.handle
        let plain = Plain()
        let bound = LoopBound(plain, on: loop)
        let thread = PosixThread {
            handle.post { loop in
                bound.value(on: loop).count += 1
                loop.stop()
            }
        }
        run(loop)
        thread.join()
        #expect(plain.count == 1)
    }

    @Test func loopsLeaveNoDescriptorBehind() throws {
        let before = openDescriptors(ofKind: "anon_inode:[eventpoll]")
        // Other tests run loops at the same time, so this test's are identified by number.
        var own: Set<CInt> = []
        for _ in 0..<200 {
            let loop = try EventLoop()
            own.insert(loop.inbox.descriptor)
            settle(loop)
        }
        // Sequential loops reuse the numbers; a leak would have used 200 of them.
        #expect(own.count < 200)
        #expect(openDescriptors(ofKind: "anon_inode:[eventpoll]") < before + 200)
    }
}

/// The number of this process's descriptors with this description in `/proc`.
func openDescriptors(ofKind kind: String) -> Int {
    guard let directory = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(directory) }
    var count = 0
    while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        var target = [CChar](repeating: 0, count: 256)
        let length = readlink("/proc/self/fd/" + name, &target, 255)
        if length > 0, String(decoding: target[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self) == kind {
            count += 1
        }
    }
    return count
}

/// A thread that can be joined.
final class PosixThread {
    private var thread = pthread_t()
    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    init(_ run: @escaping @Sendable () -> Void) {
        let status = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(Body(run)).toOpaque())
        precondition(status == 0)
    }

    func join() {
        pthread_join(thread, nil)
    }
}
