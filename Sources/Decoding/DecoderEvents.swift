package import PinproxySession
import Synchronization

/// Events of decoder processes, for the log. Called on the pool's thread: it must not wait.
package struct DecoderEvents: Sendable {
    /// A process that died, because of a body or on its own.
    package struct Incident: Sendable {
        /// The origin that sent the body, or would have received it; nil: there was no body.
        package let host: String?
        package let failure: BodyWorkFailure
        package let process: Int32
        /// The last bytes of its standard error, unchanged.
        package let output: String
    }

    package var failed: (@Sendable (Incident) -> Void)?
    /// No process can be started; why. Called when the trouble begins.
    package var unavailable: (@Sendable (String) -> Void)?
    /// A process could be started again.
    package var availableAgain: (@Sendable () -> Void)?

    package init() {}
}

package struct DecoderCounts: Sendable {
    /// Bodies that were answered.
    package internal(set) var done = 0
    package internal(set) var timedOut = 0
    /// The process died, or its answer made no sense.
    package internal(set) var failed = 0
    package internal(set) var refused = 0
    /// Processes started, and those that never became ready.
    package internal(set) var starts = 0
    package internal(set) var failedStarts = 0
    package internal(set) var processes: [Int32] = []
    /// Bodies in the queue.
    package internal(set) var waiting = 0
}

/// The counts, shared by all threads.
final class DecoderTally: Sendable {
    private let counts = Mutex(DecoderCounts())

    var now: DecoderCounts { counts.withLock { $0 } }

    func count(_ change: (inout DecoderCounts) -> Void) { counts.withLock { change(&$0) } }
}
