// EventLoop: everything that waits. One event_base per thread; no lock on the path of a request.

internal import CPinproxyLibevent

/// An event loop, used only on the thread that runs it. Its objects aren't Sendable, and call one another without
/// locks. Only `handle` crosses threads: it posts work. A *turn* is one libevent callback with the work that
/// `afterThisTurn` deferred.
package final class EventLoop {
    let base: EventBase
    let inbox: Inbox
    private let wakeup = Event()
    private let nextTurn = Event()

    private var descriptorRoom = DescriptorRoom()
    private var deferred: [() -> Void] = []
    private var running: [() -> Void] = []
    private var isStopped = false
    private var isInTurn = false
    // A number, stored whole: accesses can't overlap.
    @exclusivity(unchecked) @usableFromInline var cachedNow = MonotonicTime(nanoseconds: 0)

    package init() throws(SystemError) {
        base = try EventBase()
        inbox = try Inbox()
        let context = Unmanaged.passUnretained(self).toOpaque()
        wakeup.assign(
            on: base, descriptor: inbox.descriptor, events: EV_READ | EV_PERSIST,
            callback: { _, _, context in
                guard let context else { return }
                let loop = Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue()
                loop.inbox.drain()
                loop.receivePosts()
            }, context: context)
        nextTurn.assign(
            on: base,
            callback: { _, _, context in
                guard let context else { return }
                let loop = Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue()
                loop.beginTurn()
                loop.endTurn()
            }, context: context)
        wakeup.add()
    }

    deinit {
        inbox.close()
    }

    package var handle: Handle { Handle(inbox: inbox) }

    /// The time of its first use in this turn; outside of a turn, the clock.
    @inlinable package var now: MonotonicTime {
        cachedNow.nanoseconds != 0 ? cachedNow : readClock()
    }

    @usableFromInline func readClock() -> MonotonicTime {
        let now = MonotonicTime.now()
        if isInTurn { cachedNow = now }
        return now
    }

    /// Runs until `stop()`, once. Accepted posts run first; later ones are refused.
    package func run() {
        inbox.belongsToThisThread()
        // Work may have been deferred before the first turn.
        beginTurn()
        endTurn()
        while !isStopped, runOnce() {}
        isStopped = true
        beginTurn()
        for post in inbox.close() { post(self) }
        endTurn()
        // Work that defers itself for ever has no next turn.
        deferred = []
    }

    /// Handles what happens next, and waits for it. False: it can't wait.
    @discardableResult
    package func runOnce() -> Bool {
        if inbox.fallAsleep() { return event_base_loop(base.raw, EVLOOP_NO_EXIT_ON_EMPTY | EVLOOP_ONCE) == 0 }
        receivePosts()
        // Descriptors have their turn before posts that followed.
        let once = EVLOOP_NO_EXIT_ON_EMPTY | EVLOOP_ONCE | EVLOOP_NONBLOCK
        return isStopped || event_base_loop(base.raw, once) == 0
    }

    /// Handles what is ready now, without waiting: for a caller that decides itself when the loop turns, instead of
    /// `run()`.
    package func runReady() {
        inbox.belongsToThisThread()
        if inbox.isCalled { receivePosts() }
        event_base_loop(base.raw, EVLOOP_NONBLOCK)
    }

    /// Ends `run()` after the current callback; before `run()`, makes it return at once.
    package func stop() {
        isStopped = true
        event_base_loopbreak(base.raw)
    }

    /// Runs `work` after the current callback, in order, before the loop sleeps: to release objects that are still on
    /// the stack, or to continue a long job later. Work deferred by such work follows the ready descriptors. Costs a
    /// closure.
    package func afterThisTurn(_ work: @escaping () -> Void) {
        deferred.append(work)
        // Outside of a turn a timer is needed.
        if !isInTurn { nextTurn.add(afterNanoseconds: 0) }
    }

    /// Called by every C thunk before it enters Swift.
    @inline(__always)
    func beginTurn() {
        inbox.wakeUp()
        isInTurn = true
    }

    /// Called by every C thunk after Swift.
    @inline(__always)
    func endTurn() {
        if !deferred.isEmpty { runDeferred() }
        isInTurn = false
        cachedNow = MonotonicTime(nanoseconds: 0)
    }

    /// Call it before events of that descriptor are added.
    func makeRoom(for descriptor: CInt) {
        if let wanting = descriptorRoom.need(for: descriptor) { base.makeRoom(for: wanting) }
    }

    private func runDeferred() {
        swap(&deferred, &running)
        for work in running { work() }
        running.removeAll(keepingCapacity: true)
        // A zero timer lets the loop poll its descriptors first, without sleeping.
        if !deferred.isEmpty { nextTurn.add(afterNanoseconds: 0) }
    }

    private func receivePosts() {
        beginTurn()
        for post in inbox.take() { post(self) }
        endTurn()
    }
}
