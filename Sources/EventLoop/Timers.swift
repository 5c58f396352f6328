/// Calls its owner once after a time, unless released. For the control plane; connections use `Deadline`.
package final class Timer {
    private let deadline: Deadline
    private let fired: () -> Void

    /// - Parameters:
    ///   - owner: usually keeps the timer. Retained during the call.
    ///   - fired: called on the loop's thread, at most once, never early. It may release the timer and the owner.
    package init<Owner: AnyObject>(
        loop: EventLoop, owner: Owner, afterNanoseconds delay: UInt64, fired: @escaping @Sendable (Owner) -> Void
    ) {
        self.fired = { [weak owner] in owner.map(fired) }
        deadline = Deadline(loop: loop)
        deadline.bind(to: self) { $0.fired() }
        deadline.set(afterNanoseconds: delay)
    }
}

/// Calls its owner at an interval until released, for the control plane. A late call delays the next ones.
package final class RepeatingTimer {
    private let deadline: Deadline
    private let interval: UInt64
    private let fired: () -> Void

    /// - Parameters:
    ///   - owner: usually keeps the timer. Retained during each call.
    ///   - fired: called on the loop's thread, first after one interval. It may release the timer and the owner.
    package init<Owner: AnyObject>(
        loop: EventLoop, owner: Owner, everyNanoseconds interval: UInt64, fired: @escaping @Sendable (Owner) -> Void
    ) {
        self.interval = interval
        self.fired = { [weak owner] in owner.map(fired) }
        deadline = Deadline(loop: loop)
        deadline.bind(to: self) { $0.beat() }
        deadline.set(afterNanoseconds: interval)
    }

    private func beat() {
        deadline.set(afterNanoseconds: interval)
        fired()
    }
}
