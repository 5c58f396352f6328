import PinproxyEventLoop
import Synchronization
import Testing

@Suite struct WorkQueueTests {
    @Test func workIsDoneInItsOrder() throws {
        let queue = try WorkQueue("test")
        let seen = Mutex<[Int]>([])
        let done = Semaphore()
        for number in 0..<100 { queue.async { seen.withLock { $0.append(number) } } }
        queue.async { done.signal() }
        done.wait()
        #expect(seen.withLock { $0 } == Array(0..<100))
    }

    /// A released queue still does its work, and then its thread ends.
    @Test func whatWasAddedIsDoneAtTheEnd() throws {
        final class Held: Sendable {
            let gone: Semaphore
            init(_ gone: Semaphore) { self.gone = gone }
            deinit { gone.signal() }
        }
        let (gone, begun, mayProceed) = (Semaphore(), Semaphore(), Semaphore())
        var queue: WorkQueue? = try WorkQueue("test", isBackground: true)
        let done = Atomic(0)
        queue?.async {
            begun.signal()
            mayProceed.wait()
        }
        begun.wait()
        let held = Held(gone)
        queue?.async { withExtendedLifetime(held) { _ = done.add(1, ordering: .relaxed) } }
        queue = nil
        mayProceed.signal()
        _ = consume held
        gone.wait()
        #expect(done.load(ordering: .relaxed) == 1)
    }
}
