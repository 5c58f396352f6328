internal import Glibc
internal import Synchronization

/// A serial queue with a dedicated thread, for blocking work. A Dispatch queue creates threads on demand, and blocks
/// the caller without one.
package final class WorkQueue: Sendable {
    private let state = State()

    /// - Parameter name: for debuggers, which show 15 bytes.
    package init(_ name: String, isBackground: Bool = false) throws(SystemError) {
        let state = state
        try SystemThread.start(name, stackSize: 512 << 10) {
            // The nice value is this thread's.
            if isBackground { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Self.backgroundNiceness) }
            while let work = state.next() { work() }
        }
    }

    /// The thread ends after the queued work.
    deinit { state.finish() }

    private static let backgroundNiceness: CInt = 10

    /// - Parameter work: called once, on the thread.
    package func async(_ work: @escaping @Sendable () -> Void) { state.add(work) }

    private final class State: Sendable {
        private struct Waiting {
            var works: [@Sendable () -> Void] = []
            var first = 0
        }

        private let waiting = Mutex(Waiting())
        private let isThere = Semaphore()

        func add(_ work: @escaping @Sendable () -> Void) {
            waiting.withLock { $0.works.append(work) }
            isThere.signal()
        }

        func finish() { isThere.signal() }

        /// Nil after the last one.
        func next() -> (@Sendable () -> Void)? {
            isThere.wait()
            return waiting.withLock { waiting in
                // One signal for each work, and one for the end.
                guard waiting.first < waiting.works.count else { return nil }
                let work = waiting.works[waiting.first]
                waiting.first += 1
                if waiting.first == waiting.works.count { (waiting.works, waiting.first) = ([], 0) }
                return work
            }
        }
    }
}
