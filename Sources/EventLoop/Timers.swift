/// Calls its owner back once after a time, for the control plane; a connection's time-outs use `Deadline`.
package final class Timer {
    private let deadline: Deadline
    private let fired: () -> Void

    /// - Parameters:
    ///   - owner: usually keeps the timer. Retained during the call; after its release the timer calls nothing.
    ///   - fired: called on the loop's thread, at most once, never early. It may release the timer and the owner.
    package init<Owner: AnyObject>(
        loop: EventLoop, owner: Owner, afterNanoseconds delay: UInt64, fired: @escaping @Sendable (Owner) -> Void
    ) {
        self.fired = { [weak owner] in owner.map(fired) }
        deadline = Deadline(loop: loop)
        deadline.bind(to: self) { $0.fired() }
        deadline.set(afterNanoseconds: delay)
    }

    /// It won't fire any more. Releasing the timer does the same.
    package func cancel() {
        deadline.clear()
    }
}

/// Calls its owner back again and again at an interval, for the control plane.
///
/// A beat that comes late moves those after it: there is never a burst to catch up.
package final class RepeatingTimer {
    private let deadline: Deadline
    private let interval: UInt64
    private let fired: () -> Void

    /// - Parameters:
    ///   - owner: usually keeps the timer. Retained during each call; after its release the timer calls nothing.
    ///   - fired: called on the loop's thread, first after one interval. It may cancel the timer, and release the timer
    ///     and the owner.
    package init<Owner: AnyObject>(
        loop: EventLoop, owner: Owner, everyNanoseconds interval: UInt64, fired: @escaping @Sendable (Owner) -> Void
    ) {
        self.interval = interval
        self.fired = { [weak owner] in owner.map(fired) }
        deadline = Deadline(loop: loop)
        deadline.bind(to: self) { $0.beat() }
        deadline.set(afterNanoseconds: interval)
    }

    /// It won't fire any more. Releasing the timer does the same.
    package func cancel() {
        deadline.clear()
    }

    private func beat() {
        deadline.set(afterNanoseconds: interval)
        fired()
    }
}
