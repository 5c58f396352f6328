import Testing

@testable import EventLoop

private let millisecond: UInt64 = 1_000_000

@Suite struct DeadlineTests {
    @Test func `it expires once, and not early`() throws {
        let loop = try EventLoop()
        let due = MonotonicTime.now().advanced(byNanoseconds: 20 * millisecond)
        var expired: [MonotonicTime] = []
        let deadline = Deadline(loop: loop) {
            expired.append(.now())
            settleThenStop(loop)
        }
        deadline.set(due)
        #expect(deadline.isSet)
        run(loop)
        #expect(expired.count == 1)
        #expect(try #require(expired.first) >= due)
        #expect(!deadline.isSet)
    }

    @Test func `one in the past expires as soon as the loop runs, not within set`() throws {
        let loop = try EventLoop()
        var expired = 0
        let deadline = Deadline(loop: loop) {
            expired += 1
            loop.stop()
        }
        deadline.set(MonotonicTime(nanoseconds: 1))
        #expect(expired == 0)
        run(loop)
        #expect(expired == 1)
    }

    @Test func `it is overdue by the clock, whether the loop has come to it or not`() throws {
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

    @Test func `moved later, it keeps the later instant`() throws {
        let loop = try EventLoop()
        var expired: MonotonicTime?
        let deadline = Deadline(loop: loop) {
            expired = .now()
            loop.stop()
        }
        deadline.set(afterNanoseconds: millisecond)
        let due = MonotonicTime.now().advanced(byNanoseconds: 30 * millisecond)
        deadline.set(due)
        run(loop)
        #expect(try #require(expired) >= due)
    }

    @Test func `moved earlier, it doesn't wait for the later instant`() throws {
        let loop = try EventLoop()
        var expired = 0
        let deadline = Deadline(loop: loop) {
            expired += 1
            loop.stop()
        }
        deadline.set(afterNanoseconds: 3_600_000 * millisecond)
        deadline.set(afterNanoseconds: millisecond)
        run(loop)
        #expect(expired == 1)
    }

    @Test func `cleared, it doesn't expire, and can be set again`() throws {
        let loop = try EventLoop()
        var expired = 0
        let cleared = Deadline(loop: loop) { expired += 100 }
        let reused = Deadline(loop: loop) {
            expired += 1
            loop.stop()
        }
        cleared.set(afterNanoseconds: millisecond)
        reused.set(afterNanoseconds: millisecond)
        cleared.clear()
        reused.clear()
        #expect(!cleared.isSet)
        reused.set(afterNanoseconds: 20 * millisecond)
        run(loop)
        #expect(expired == 1)
    }

    @Test func `the end of time is never`() throws {
        let loop = try EventLoop()
        let deadline = Deadline(loop: loop) { Issue.record("the end of time was reached") }
        deadline.set(afterNanoseconds: .max)
        let almost = Deadline(loop: loop) { Issue.record("the end of time was reached") }
        almost.set(MonotonicTime(nanoseconds: .max - 1))
        settle(loop)
    }

    @Test func `it may be set anew and released in its callback`() throws {
        let loop = try EventLoop()
        var rounds = 0
        var deadline: Deadline?
        weak var gone: Deadline?
        deadline = Deadline(loop: loop) {
            rounds += 1
            if rounds < 3 {
                deadline?.set(afterNanoseconds: 0)
            } else {
                deadline = nil
                loop.stop()
            }
        }
        gone = deadline
        deadline?.set(afterNanoseconds: 0)
        run(loop)
        #expect(rounds == 3)
        #expect(gone == nil)
    }

    @Test func `a repeating timer beats until it is cancelled, a released one not at all`() throws {
        let loop = try EventLoop()
        var beats = 0
        var timer: RepeatingTimer?
        timer = RepeatingTimer(loop: loop, everyNanoseconds: millisecond) {
            beats += 1
            if beats == 3 {
                timer?.cancel()
                settleThenStop(loop)
            }
        }
        do { _ = Timer(loop: loop, afterNanoseconds: 0) { Issue.record("a released timer fired") } }
        let cancelled = Timer(loop: loop, afterNanoseconds: 0) { Issue.record("a cancelled timer fired") }
        cancelled.cancel()
        run(loop)
        #expect(beats == 3)
        timer = nil
    }
}

/// Long enough for a second, wrong call to come.
private func settleThenStop(_ loop: EventLoop) {
    loop.afterThisTurn { loop.afterThisTurn { loop.afterThisTurn { loop.stop() } } }
}
