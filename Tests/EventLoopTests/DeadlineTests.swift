import Testing

@testable import PinproxyEventLoop

private let millisecond: UInt64 = 1_000_000

/// The owner of a deadline or a timer: records its calls, and forwards them to a test.
private final class Owner {
    let loop: EventLoop
    var deadline: Deadline?
    var timer: Timer?
    var beat: RepeatingTimer?
    private(set) var calls: [MonotonicTime] = []
    private let called: (Owner) -> Void

    init(_ loop: EventLoop, called: @escaping (Owner) -> Void = { _ in Issue.record("it was called") }) {
        self.loop = loop
        self.called = called
    }

    func passed() {
        calls.append(.now())
        called(self)
    }
}

extension Deadline {
    fileprivate convenience init(_ owner: Owner) {
        self.init(loop: owner.loop, owner: owner) { $0.passed() }
        owner.deadline = self
    }
}

@Suite struct DeadlineTests {
    @Test func itExpiresOnceAndNotEarly() throws {
        let loop = try EventLoop()
        let due = MonotonicTime.now().advanced(byNanoseconds: 20 * millisecond)
        let owner = Owner(loop) { settleThenStop($0.loop) }
        let deadline = Deadline(owner)
        deadline.set(due)
        #expect(deadline.isSet)
        run(loop)
        #expect(owner.calls.count == 1)
        #expect(try #require(owner.calls.first) >= due)
        #expect(!deadline.isSet)
    }

    @Test func oneInThePastExpiresAsSoonAsTheLoopRunsNotWithinSet() throws {
        let loop = try EventLoop()
        let owner = Owner(loop) { $0.loop.stop() }
        Deadline(owner).set(MonotonicTime(nanoseconds: 1))
        #expect(owner.calls.isEmpty)
        run(loop)
        #expect(owner.calls.count == 1)
    }

    @Test func itIsOverdueByTheClockWhetherTheLoopHasComeToItOrNot() throws {
        let deadline = Deadline(loop: try EventLoop())
        #expect(!deadline.isOverdue)
        deadline.set(MonotonicTime(nanoseconds: 1))
        #expect(deadline.isOverdue)
        deadline.set(MonotonicTime.now().advanced(byNanoseconds: 3600 * 1000 * millisecond))
        #expect(!deadline.isOverdue)
        deadline.set(MonotonicTime(nanoseconds: 1))
        deadline.clear()
        #expect(!deadline.isOverdue)
    }

    @Test func movedLaterItKeepsTheLaterInstant() throws {
        let loop = try EventLoop()
        let owner = Owner(loop) { $0.loop.stop() }
        let deadline = Deadline(owner)
        deadline.set(afterNanoseconds: millisecond)
        let due = MonotonicTime.now().advanced(byNanoseconds: 30 * millisecond)
        deadline.set(due)
        run(loop)
        #expect(try #require(owner.calls.first) >= due)
    }

    @Test func movedEarlierItDoesntWaitForTheLaterInstant() throws {
        let loop = try EventLoop()
        let owner = Owner(loop) { $0.loop.stop() }
        let deadline = Deadline(owner)
        deadline.set(afterNanoseconds: 3_600_000 * millisecond)
        deadline.set(afterNanoseconds: millisecond)
        run(loop)
        #expect(owner.calls.count == 1)
    }

    @Test func clearedItDoesntExpireAndCanBeSetAgain() throws {
        let loop = try EventLoop()
        let silent = Owner(loop)
        let owner = Owner(loop) { $0.loop.stop() }
        let (cleared, reused) = (Deadline(silent), Deadline(owner))
        cleared.set(afterNanoseconds: millisecond)
        reused.set(afterNanoseconds: millisecond)
        cleared.clear()
        reused.clear()
        #expect(!cleared.isSet)
        reused.set(afterNanoseconds: 20 * millisecond)
        run(loop)
        #expect(owner.calls.count == 1)
    }

    @Test func theEndOfTimeIsNever() throws {
        let loop = try EventLoop()
        let (owner, other) = (Owner(loop), Owner(loop))
        Deadline(owner).set(afterNanoseconds: .max)
        Deadline(other).set(MonotonicTime(nanoseconds: .max - 1))
        settle(loop)
    }

    @Test func itMayBeSetAnewAndReleasedInItsCallback() throws {
        let loop = try EventLoop()
        let owner = Owner(loop) { owner in
            if owner.calls.count < 3 { return owner.deadline?.set(afterNanoseconds: 0) ?? () }
            owner.deadline = nil
            owner.loop.stop()
        }
        Deadline(owner).set(afterNanoseconds: 0)
        weak let gone = owner.deadline
        run(loop)
        #expect(owner.calls.count == 3)
        #expect(gone == nil)
    }

    @Test func oneWithoutAnOwnerExpiresWithoutACall() throws {
        let loop = try EventLoop()
        let deadline = Deadline(loop: loop)
        deadline.set(afterNanoseconds: 0)
        settle(loop)
        #expect(!deadline.isSet)
    }

    @Test func aRepeatingTimerBeatsUntilItIsReleasedATimerThatIsReleasedBeforeItsTimeNotAtAll()
        throws
    {
        let loop = try EventLoop()
        let owner = Owner(loop) { owner in
            guard owner.calls.count == 3 else { return }
            owner.beat = nil
            settleThenStop(owner.loop)
        }
        owner.beat = RepeatingTimer(loop: loop, owner: owner, everyNanoseconds: millisecond) { $0.passed() }
        let released = Owner(loop)
        released.timer = Timer(loop: loop, owner: released, afterNanoseconds: 0) { $0.passed() }
        released.timer = nil
        run(loop)
        #expect(owner.calls.count == 3)
    }
}

/// An owner lives until a call by its deadline or timer has returned, whatever it releases.
@Suite struct OwnerTests {
    enum Caller: CaseIterable {
        case deadline, timer, repeatingTimer

        fileprivate func begin(for owner: Owner) {
            switch self {
            case .deadline: Deadline(owner).set(afterNanoseconds: 0)
            case .timer: owner.timer = Timer(loop: owner.loop, owner: owner, afterNanoseconds: 0) { $0.passed() }
            case .repeatingTimer:
                owner.beat = RepeatingTimer(loop: owner.loop, owner: owner, everyNanoseconds: 1) { $0.passed() }
            }
        }
    }

    private final class Holder {
        var owner: Owner?
    }

    @Test(arguments: Caller.allCases)
    func anOwnerMayReleaseItselfInACall(by caller: Caller) throws {
        let loop = try EventLoop()
        let holder = Holder()
        holder.owner = Owner(loop) { owner in
            holder.owner = nil
            owner.deadline = nil
            owner.timer = nil
            owner.beat = nil
            #expect(owner.calls.count == 1)
            settleThenStop(owner.loop)
        }
        weak let gone = holder.owner
        caller.begin(for: try #require(holder.owner))
        run(loop)
        #expect(holder.owner == nil)
        #expect(gone == nil)
    }

    @Test(arguments: Caller.allCases)
    func aDeadlineOrATimerDoesntKeepItsOwner(_ caller: Caller) throws {
        let loop = try EventLoop()
        let holder = Holder()
        holder.owner = Owner(loop)
        weak let gone = holder.owner
        caller.begin(for: try #require(holder.owner))
        holder.owner = nil
        #expect(gone == nil)
        settle(loop)
    }
}

/// Long enough for a second, wrong call to arrive.
private func settleThenStop(_ loop: EventLoop) {
    loop.afterThisTurn { loop.afterThisTurn { loop.afterThisTurn { loop.stop() } } }
}
