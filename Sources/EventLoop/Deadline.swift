internal import CLibevent

/// A deadline that is moved on every bit of progress and hardly ever passes.
///
/// Moving it later, and clearing it, cost a store. One timer is armed for the earliest instant that was ever needed;
/// when it fires too early, because the deadline has moved since, it is armed again. The price is one needless
/// wake-up per time-out and connection, instead of a timer operation per request.
package final class Deadline {
    private static let never = MonotonicTime(nanoseconds: .max)

    private let loop: EventLoop
    private var expired: () -> Void = {}
    private let timer = Event()
    private var due = Deadline.never
    private var armedFor = Deadline.never

    /// A deadline that tells nobody, until ``bind(to:_:)``: for owners that hold it in a `let`.
    package init(loop: EventLoop) {
        self.loop = loop
        timer.assign(
            on: loop.base,
            callback: { _, _, context in
                guard let context else { return }
                // The context is alive, since the event goes with it; and it is held here until `fired` returns.
                Unmanaged<Deadline>.fromOpaque(context).takeUnretainedValue().fired()
            }, context: Unmanaged.passUnretained(self).toOpaque())
    }

    package convenience init<Owner: AnyObject>(
        loop: EventLoop, owner: Owner, expired: @escaping @Sendable (Owner) -> Void
    ) {
        self.init(loop: loop)
        bind(to: owner, expired)
    }

    /// - Parameters:
    ///   - owner: holds the deadline, alone or by objects that nobody else holds. It is retained for the time of a call.
    ///   - expired: called on the loop's thread, once for each deadline that passes, never early. It may set the deadline
    ///     anew, and release the deadline and its owner. It is Sendable, so that it captures no object of the loop but
    ///     gets its owner: a captured one would be kept for ever, or be gone.
    package func bind<Owner: AnyObject>(to owner: Owner, _ expired: @escaping @Sendable (Owner) -> Void) {
        // unowned: the deadline goes with its owner, and doesn't fire after that. Weak costs 2.6 % of an exchange.
        self.expired = { [unowned owner] in expired(owner) }
    }

    /// Is a deadline set and not yet passed?
    package var isSet: Bool { due != Deadline.never }

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
