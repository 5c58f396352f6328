internal import CLibevent

/// A deadline that is moved on every bit of progress and hardly ever passes. Moving it later, and clearing it, cost a
/// store: one timer is armed for the earliest instant, and again when it fires too early.
package final class Deadline {
    private static let never = MonotonicTime(nanoseconds: .max)

    private let loop: EventLoop
    private var expired: () -> Void = {}
    private let timer = Event()
    private var due = Deadline.never
    private var armedFor = Deadline.never

    /// Creates a deadline without an owner, for classes that keep it in a `let`: ``bind(to:_:)`` follows.
    package init(loop: EventLoop) {
        self.loop = loop
        timer.assign(
            on: loop.base,
            callback: { _, _, context in
                guard let context else { return }
                // Alive: its event is deleted with it. Retained until `fired` returns.
                Unmanaged<Deadline>.fromOpaque(context).takeUnretainedValue().fired()
            }, context: Unmanaged.passUnretained(self).toOpaque())
    }

    package convenience init<Owner: AnyObject>(
        loop: EventLoop, owner: Owner, expired: @escaping @Sendable (Owner) -> Void
    ) {
        self.init(loop: loop)
        bind(to: owner, expired)
    }

    /// Sets what is called when the deadline passes.
    ///
    /// - Parameters:
    ///   - owner: keeps the deadline, directly or in an object that only it keeps. Retained during each call.
    ///   - expired: called on the loop's thread, once for each deadline that passes, never early. It may set the
    ///     deadline again, and release it and its owner. Sendable, so that it can't capture the loop's objects.
    package func bind<Owner: AnyObject>(to owner: Owner, _ expired: @escaping @Sendable (Owner) -> Void) {
        // unowned: the deadline is released with its owner and then can't fire. Weak costs 2.6 % of an exchange.
        self.expired = { [unowned owner] in expired(owner) }
    }

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
