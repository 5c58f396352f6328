import PinproxyEventLoop
import Testing

@testable import PinproxyDaemon

/// Driven by hand: the threads are closures that answer when the test decides.
@Suite struct HeartbeatTests {
    /// Runs the loop for a number of its heartbeat intervals.
    private final class Bench {
        let loop: EventLoop
        var asked: [@Sendable () -> Void] = []
        var alive = 0
        private var heartbeat: Heartbeat?
        private static let interval: UInt64 = 1_000_000

        init(threads: Int) throws {
            loop = try EventLoop()
            let asks: [Heartbeat.Ask] = (0..<threads).map { _ in { [unowned self] answer in asked.append(answer) } }
            heartbeat = Heartbeat(loop: loop, intervalNanoseconds: Self.interval, threads: asks) { [unowned self] in
                alive += 1
            }
            heartbeat?.start()
        }

        func run(intervals: UInt64) {
            let end = Timer(loop: loop, owner: loop, afterNanoseconds: intervals * Self.interval) { $0.stop() }
            loop.run()
            withExtendedLifetime(end) {}
        }
    }

    @Test func onlyTheAnswersOfAllCount() throws {
        let bench = try Bench(threads: 3)
        #expect(bench.asked.count == 3)
        for answer in bench.asked.dropLast() { answer() }
        bench.run(intervals: 20)
        // One is stuck: nothing is reported, and no worker is asked again.
        #expect(bench.alive == 0 && bench.asked.count == 3)
    }

    @Test func whoHasAnsweredIsAskedAgain() throws {
        let bench = try Bench(threads: 3)
        for answer in bench.asked { answer() }
        bench.run(intervals: 20)
        #expect(bench.alive == 1 && bench.asked.count == 6)
    }
}
