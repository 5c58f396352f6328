// The room of everything that waits. One event_base a thread; no lock on the path of a request.

internal import CLibevent

/// A loop of events, and the thread that runs it is the only one that may touch it.
///
/// Its objects aren't Sendable either, and call one another without locks. Only `handle` crosses threads: it posts work
/// to the loop. A *turn* is one callback from libevent with the work that it put off by `afterThisTurn`.
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
    // A number, read and stored whole: no access of it can overlap another.
    @exclusivity(unchecked) @usableFromInline var cachedNow = MonotonicTime(nanoseconds: 0)

    package init() throws(SystemError) {
        base = try EventBase()
        inbox = try Inbox()
        let context = Unmanaged.passUnretained(self).toOpaque()
        wakeup.assign(
            on: base, descriptor: inbox.descriptor, events: EV_READ | EV_PERSIST,
            callback: { _, _, context in
                guard let context else { return }
                Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue().receivePosts()
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

    /// The time at which this turn first asked for it, the same for the rest of the turn; outside of a turn, the clock.
    @inlinable package var now: MonotonicTime {
        cachedNow.nanoseconds != 0 ? cachedNow : readClock()
    }

    @usableFromInline func readClock() -> MonotonicTime {
        let now = MonotonicTime.now()
        if isInTurn { cachedNow = now }
        return now
    }

    /// Runs until `stop()`, once in the life of a loop. Accepted posts are run first; later ones are refused.
    package func run() {
        inbox.belongsToThisThread()
        // Work may have been put off before there was a turn to end.
        beginTurn()
        endTurn()
        while !isStopped, event_base_loop(base.raw, EVLOOP_NO_EXIT_ON_EMPTY) == 0 {}
        isStopped = true
        beginTurn()
        for post in inbox.close() { post(self) }
        endTurn()
        // There is no next turn for those who put themselves off again and again.
        deferred = []
    }

    /// Ends `run()` when the callback in progress returns; before `run()`, makes it return at once.
    package func stop() {
        isStopped = true
        event_base_loopbreak(base.raw)
    }

    /// Runs `work` after the callback in progress, before the loop sleeps: to release objects that are still on the
    /// stack, or to continue a long job after others had their turn, in order of the calls.
    ///
    /// Work put off by such work follows the descriptors that are ready by then. Costs a closure.
    package func afterThisTurn(_ work: @escaping () -> Void) {
        deferred.append(work)
        // Outside of a turn nothing would come to look.
        if !isInTurn { nextTurn.add(afterNanoseconds: 0) }
    }

    /// To be called by every C thunk before it enters Swift.
    @inline(__always)
    func beginTurn() {
        isInTurn = true
    }

    /// To be called by every C thunk when Swift has returned.
    @inline(__always)
    func endTurn() {
        if !deferred.isEmpty { runDeferred() }
        isInTurn = false
        cachedNow = MonotonicTime(nanoseconds: 0)
    }

    /// To be called before events of that descriptor are added.
    func makeRoom(for descriptor: CInt) {
        if let wanting = descriptorRoom.need(for: descriptor) { base.makeRoom(for: wanting) }
    }

    private func runDeferred() {
        swap(&deferred, &running)
        for work in running { work() }
        running.removeAll(keepingCapacity: true)
        // A timer of no time lets the loop look at its descriptors first, without sleeping.
        if !deferred.isEmpty { nextTurn.add(afterNanoseconds: 0) }
    }

    private func receivePosts() {
        beginTurn()
        for post in inbox.take() { post(self) }
        endTurn()
    }
}
