package import Session
import Synchronization

/// What became of processes that decode, for who keeps the log. Called on the pool's thread: it must not wait.
package struct DecoderEvents: Sendable {
    /// A process that ended by a body, or by itself.
    package struct Incident: Sendable {
        /// Of which the body came, or to which it was to go; nil: there was none.
        package let host: String?
        package let failure: BodyWorkFailure
        package let process: Int32
        /// The last of what it wrote to standard error, as it came.
        package let output: String
    }

    package var failed: (@Sendable (Incident) -> Void)?
    /// No process can be started; why. Told when that begins.
    package var unavailable: (@Sendable (String) -> Void)?
    /// One could be started again.
    package var availableAgain: (@Sendable () -> Void)?

    package init() {}
}

/// How often each thing happened, and what there is now.
package struct DecoderCounts: Sendable {
    /// Bodies that were answered.
    package internal(set) var done = 0
    package internal(set) var timedOut = 0
    /// The process ended, or answered what makes no sense.
    package internal(set) var failed = 0
    /// Bodies for which there was no room, or no process.
    package internal(set) var refused = 0
    /// Processes that were started, and those of them that never got ready.
    package internal(set) var starts = 0
    package internal(set) var failedStarts = 0
    /// Processes, by their numbers.
    package internal(set) var processes: [Int32] = []
    /// Bodies that wait for their turn.
    package internal(set) var waiting = 0
}

/// The counts, for all threads.
final class DecoderTally: Sendable {
    private let counts = Mutex(DecoderCounts())

    var now: DecoderCounts { counts.withLock { $0 } }

    func count(_ change: (inout DecoderCounts) -> Void) { counts.withLock { change(&$0) } }
}
