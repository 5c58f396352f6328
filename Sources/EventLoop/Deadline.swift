internal import CLibevent

/// A deadline that is moved on every bit of progress and hardly ever passes.
///
/// Moving it later, and clearing it, cost a store. One timer is armed for the earliest instant that was ever needed;
/// when it fires too early, because the deadline has moved since, it is armed again. The price is one needless
/// wake-up per time-out and connection, instead of a timer operation per request.
package final class Deadline {
    private static let never = MonotonicTime(nanoseconds: .max)

    private let loop: EventLoop
    /// Called on the loop's thread, once for each deadline that passes, never early. It may set the deadline anew
    /// or release it. It is held as long as the deadline: let it capture the deadline's holder weakly or unowned.
    package var expired: () -> Void
    private let timer = Event()
    private var due = Deadline.never
    private var armedFor = Deadline.never

    /// - Parameter expired: see ``expired``; whoever holds the deadline in a `let` sets it at the end of its own init.
    package init(loop: EventLoop, expired: @escaping () -> Void = {}) {
        self.loop = loop
        self.expired = expired
        timer.assign(
            on: loop.base,
            callback: { _, _, context in
                guard let context else { return }
                Unmanaged<Deadline>.fromOpaque(context).takeUnretainedValue().fired()
            }, context: Unmanaged.passUnretained(self).toOpaque())
    }

    /// Is a deadline set and not yet passed?
    package var isSet: Bool { due != Deadline.never }

    /// Whether it has passed by the clock. Work that holds the loop up keeps ``expired`` from being called in time.
    package var isOverdue: Bool { due <= MonotonicTime.now() }

    /// Replaces the deadline by that instant; one in the past expires as soon as the loop gets to it.
    package func set(_ instant: MonotonicTime) {
        due = instant
        if instant < armedFor { arm() }
    }

    /// Replaces the deadline by one that much after `loop.now`.
    package func set(afterNanoseconds delay: UInt64) {
        set(loop.now.advanced(byNanoseconds: delay))
    }

    /// There is no deadline any more. The timer is left to fire for nothing: cheaper than taking it out.
    package func clear() {
        due = Deadline.never
    }

    private func arm() {
        armedFor = due
        timer.add(afterNanoseconds: due - loop.now)
    }

    private func fired() {
        let loop = self.loop
        loop.beginTurn()
        armedFor = Deadline.never
        if due <= loop.now {
            due = Deadline.never
            expired()
        } else if due != Deadline.never {
            // It has moved; or libevent's coarse clock was up to 4 ms early.
            arm()
        }
        loop.endTurn()
    }
}
