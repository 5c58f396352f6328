package import Logging
package import PinproxyEventLoop
import Synchronization

/// Writes files of the state directory on a separate thread: a disk that doesn't answer delays neither the daemon's
/// loop nor its clients.
package final class StateWriter: Sendable {
    private struct State {
        var pending = 0
        /// Whether the disk doesn't answer, which is logged.
        var isStuck = false
    }

    /// Nanoseconds for which the daemon's loop waits for the disk.
    package static let patience: UInt64 = 2_000_000_000

    private let queue: WorkQueue
    private let state = Mutex(State())
    private let directory: String
    private let logger: Logger

    package init(directory: String, logger: Logger) throws(SystemError) {
        self.directory = directory
        self.logger = logger
        queue = try WorkQueue("state")
    }

    /// The disk doesn't answer.
    var isStuck: Bool { state.withLock { $0.isStuck } }

    /// Does the work later, or not at all if earlier work isn't finished.
    /// - Parameter work: called at most once, on the thread.
    package func later(_ work: @escaping @Sendable () -> Void) {
        if state.withLock({ $0.pending > 0 }) { return stuck() }
        enqueue(work)
    }

    /// Waits for the work to finish, for ``patience`` at most, and not at all while the disk doesn't answer.
    /// - Parameter work: called once, on the thread.
    /// - Returns: its result; nil: the work isn't finished.
    package func now<Result: Sendable>(_ work: @escaping @Sendable () -> Result) -> Result? {
        let outcome = Outcome<Result>()
        let isStuck = isStuck
        enqueue {
            let result = work()
            outcome.result.withLock { $0 = result }
            outcome.isThere.signal()
        }
        guard !isStuck, outcome.isThere.wait(forNanoseconds: Self.patience) else {
            stuck()
            return nil
        }
        return outcome.result.withLock { $0 }
    }

    private final class Outcome<Result: Sendable>: Sendable {
        let result = Mutex<Result?>(nil)
        let isThere = Semaphore()
    }

    package var problem: StateFileProblem {
        StateFileProblem(path: directory, isBroken: false, cause: "the disk doesn't answer")
    }

    private func enqueue(_ work: @escaping @Sendable () -> Void) {
        state.withLock { $0.pending += 1 }
        queue.async { [self] in
            work()
            let isOver = state.withLock { state in
                state.pending -= 1
                guard state.isStuck, state.pending == 0 else { return false }
                state.isStuck = false
                return true
            }
            if isOver { logger.notice("state.unwritable", metadata: ["file": "\(directory)", "effect": "over"]) }
        }
    }

    private func stuck() {
        let isNew = state.withLock { state in
            guard state.pending > 0, !state.isStuck else { return false }
            state.isStuck = true
            return true
        }
        guard isNew else { return }
        logger.warning(
            "state.unwritable",
            metadata: [
                "file": "\(problem.path)", "cause": "\(problem.cause)",
                "effect": "the proxy continues, and writes when the disk answers",
            ])
    }
}
