/// Calls back once after a time, for the control plane; a connection's time-outs use `Deadline`.
package final class Timer {
    private let deadline: Deadline

    /// `fired` is called on the loop's thread, at most once, never early. It is held until the timer is released.
    package init(loop: EventLoop, afterNanoseconds delay: UInt64, fired: @escaping () -> Void) {
        deadline = Deadline(loop: loop, expired: fired)
        deadline.set(afterNanoseconds: delay)
    }

    /// It won't fire any more. Releasing the timer does the same.
    package func cancel() {
        deadline.clear()
    }
}

/// Calls back again and again at an interval, for the control plane.
///
/// A beat that comes late moves those after it: there is never a burst to catch up.
package final class RepeatingTimer {
    private var deadline: Deadline?

    /// `fired` is called on the loop's thread, first after one interval. It may cancel or release the timer.
    package init(loop: EventLoop, everyNanoseconds interval: UInt64, fired: @escaping () -> Void) {
        let deadline = Deadline(loop: loop) { [weak self] in
            self?.deadline?.set(afterNanoseconds: interval)
            fired()
        }
        self.deadline = deadline
        deadline.set(afterNanoseconds: interval)
    }

    /// It won't fire any more. Releasing the timer does the same.
    package func cancel() {
        deadline = nil
    }
}
