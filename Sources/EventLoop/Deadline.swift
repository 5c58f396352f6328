internal import CPinproxyLibevent

/// A deadline that moves with all progress and rarely passes. Moving it later, or clearing it, costs a store: one timer
/// is armed for the earliest instant, and again when it fires too early.
package final class Deadline {
    private static let never = MonotonicTime(nanoseconds: .max)

    private let loop: EventLoop
    private var expired: () -> Void = {}
    private let timer = Event()
    private var due = Deadline.never
    private var armedFor = Deadline.never

    /// A deadline without an owner, for a `let`: ``bind(to:_:)`` follows.
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

    /// - Parameters:
    ///   - owner: keeps the deadline, directly or in an object that only it keeps. Retained during each call.
    ///   - expired: called on the loop's thread, once for each deadline that passes, never early. It may set the
    ///     deadline again, and release it and its owner. Sendable, so that it can't capture the loop's objects.
    package func bind<Owner: AnyObject>(to owner: Owner, _ expired: @escaping @Sendable (Owner) -> Void) {
        // unowned: the deadline is released with its owner and then can't fire. Weak costs 2.6 % of an exchange.
        self.expired = { [unowned owner] in expired(owner) }
    }

    package var isSet: Bool { due != Deadline.never }

    /// Whether it has passed by the clock; a busy loop delays ``expired``.
    package var isOverdue: Bool { due <= MonotonicTime.now() }

    /// Sets the deadline; one in the past expires at once on the loop.
    package func set(_ instant: MonotonicTime) {
        due = instant
        if instant < armedFor { arm() }
    }

    /// Sets the deadline relative to `loop.now`.
    package func set(afterNanoseconds delay: UInt64) {
        set(loop.now.advanced(byNanoseconds: delay))
    }

    /// Clears the deadline. The timer may still fire for nothing, which is cheaper than removing it.
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
