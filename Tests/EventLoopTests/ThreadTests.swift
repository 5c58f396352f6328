import Dispatch
import Glibc
import Synchronization
import Testing

@testable import PinproxyEventLoop

@Suite(.timeLimit(.minutes(5)))
struct ThreadTests {
    /// The process's signals are for the thread that waits for them; a thread's own faults must show.
    @Test(arguments: [(SIGTERM, true), (SIGHUP, true), (SIGINT, true), (SIGSEGV, false), (SIGABRT, false)])
    func aThreadTakesNoSignals(signal: CInt, isBlocked: Bool) throws {
        let seen = Mutex<CInt>(-1)
        let done = DispatchSemaphore(value: 0)
        try SystemThread.start("test", stackSize: 256 << 10) {
            var mask = sigset_t()
            pthread_sigmask(SIG_BLOCK, nil, &mask)
            seen.withLock { $0 = sigismember(&mask, signal) }
            done.signal()
        }
        done.wait()
        #expect(seen.withLock { $0 } == (isBlocked ? 1 : 0))
    }

    private final class Ingredient: Sendable {}

    private final class Object {
        let loop: EventLoop

        init(_ loop: EventLoop, _ ingredient: Ingredient?) { self.loop = loop }
    }

    /// A worker's first configuration isn't retained by the thread that it was started on.
    @Test func whatAnObjectWasMadeOfGoes() throws {
        var ingredient: Ingredient? = Ingredient()
        weak let seen = ingredient
        let thread = try LoopThread.start("test", stackSize: 256 << 10) { [ingredient] loop in Object(loop, ingredient)
        }
        ingredient = nil
        #expect(seen == nil)
        #expect(thread.perform { _ in })
        thread.stop()
    }

    private final class Place: Sendable {
        let thread = Mutex<pthread_t?>(nil)
        let bound = Mutex<LoopBound<Witness>?>(nil)
    }

    /// Records the thread that releases it.
    private final class Witness {
        private let place: Place

        init(_ place: Place) { self.place = place }

        deinit { place.thread.withLock { $0 = pthread_self() } }
    }

    private func run(_ thread: LoopThread<Object>, _ work: @escaping @Sendable (Object) -> Void) {
        let done = DispatchSemaphore(value: 0)
        let isTaken = thread.perform {
            work($0)
            done.signal()
        }
        if isTaken { done.wait() }
    }

    /// A deinit may close a socket or delete an event, which only the loop's thread may do.
    @Test(arguments: [false, true]) func aLoopBoundValueIsReleasedOnItsLoopsThread(isLastOnLoop: Bool) throws {
        let (thread, place) = (try LoopThread.start("test", stackSize: 256 << 10) { Object($0, nil) }, Place())
        run(thread) { object in place.bound.withLock { $0 = LoopBound(Witness(place), on: object.loop) } }
        if isLastOnLoop {
            run(thread) { _ in place.bound.withLock { $0 = nil } }
        } else {
            place.bound.withLock { $0 = nil }
        }
        let loops = Mutex<pthread_t?>(nil)
        run(thread) { _ in loops.withLock { $0 = pthread_self() } }
        #expect(place.thread.withLock { $0 } == loops.withLock { $0 })
        thread.stop()
    }

    @Test func aLoopBoundValueOfAnEndedLoopIsReleasedAtOnce() throws {
        let place = Place()
        let loop = try EventLoop()
        let bound = Mutex<LoopBound<Witness>?>(LoopBound(Witness(place), on: loop))
        loop.stop()
        loop.run()
        let (_, other) = try SystemThread.run("test", stackSize: 128 << 10) {
            bound.withLock { $0 = nil }
            return ((), pthread_self())
        }
        #expect(place.thread.withLock { $0 } == other)
    }

    @Test func workIsWaitedForOnItsOwnThread() throws {
        let caller = pthread_self()
        for number in 0..<200 {
            let (result, thread) = try SystemThread.run("test", stackSize: 128 << 10) {
                ([number, number * 2], pthread_self())
            }
            #expect(result == [number, number * 2] && thread != caller)
        }
    }
}
