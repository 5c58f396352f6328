internal import CPinproxyLibevent

/// Work that runs once after all descriptors that are ready now, before the loop waits: what many of them caused is
/// done in one go. Scheduling it costs a list operation, and no closure.
package final class AfterRound {
    private let loop: EventLoop
    private var work: () -> Void = {}
    private let event = Event()
    private var isScheduled = false

    /// Work without an owner, for a `let`: ``bind(to:_:)`` follows.
    package init(loop: EventLoop) {
        self.loop = loop
        event.assign(
            on: loop.base,
            callback: { _, _, context in
                guard let context else { return }
                // Alive: its event is deleted with it. Retained until `fired` returns.
                Unmanaged<AfterRound>.fromOpaque(context).takeUnretainedValue().fired()
            }, context: Unmanaged.passUnretained(self).toOpaque())
    }

    /// - Parameters:
    ///   - owner: keeps this object, directly or in an object that only it keeps. Retained during each call.
    ///   - work: called on the loop's thread, once for each round with a ``schedule()``. It may schedule itself again,
    ///     and release this object and its owner. Sendable, so that it can't capture the loop's objects.
    package func bind<Owner: AnyObject>(to owner: Owner, _ work: @escaping @Sendable (Owner) -> Void) {
        // unowned: this object is released with its owner, and its event with it.
        self.work = { [unowned owner] in work(owner) }
    }

    package func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        event.activate()
    }

    private func fired() {
        let loop = self.loop
        loop.beginTurn()
        isScheduled = false
        work()
        loop.endTurn()
    }
}
