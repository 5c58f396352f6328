internal import Glibc
internal import Synchronization

/// A serial queue with a dedicated thread, for work that may block. A Dispatch queue creates threads on demand, and
/// blocks the caller if the system has none left.
package final class WorkQueue: Sendable {
    private let state = State()

    /// - Parameter name: for debuggers; at most 15 bytes of it are seen.
    package init(_ name: String, isBackground: Bool = false) throws(SystemError) {
        let state = state
        try SystemThread.start(name, stackSize: 512 << 10) {
            // Of this thread alone.
            if isBackground { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Self.backgroundNiceness) }
            while let work = state.next() { work() }
        }
    }

    /// The thread ends when it has done what was added.
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
                // Each work has a signal, and the end one more.
                guard waiting.first < waiting.works.count else { return nil }
                let work = waiting.works[waiting.first]
                waiting.first += 1
                if waiting.first == waiting.works.count { (waiting.works, waiting.first) = ([], 0) }
                return work
            }
        }
    }
}
