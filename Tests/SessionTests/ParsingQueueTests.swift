import Dispatch
import EventLoop
import Testing

@testable import Session

@Suite(.timeLimit(.minutes(5))) struct ParsingQueueTests {
    /// What waits is bounded; a body larger than the bound has its turn when nothing else waits.
    @Test func moreThanTheCapacityIsRefused() throws {
        let bench = try Workbench()
        let queue = ParsingQueue(threads: 1, capacity: 100)
        let gate = DispatchSemaphore(value: 0)
        var answers: [Int] = []
        func perform(_ size: Int, waits: Bool = false, isLast: Bool = false) -> Bool {
            queue.perform(size, on: bench.loop) {
                if waits { gate.wait() }
                return size
            } answer: { [stop = bench.stop] in
                answers.append($0)
                if isLast { stop.isWanted = true }
            }
        }
        // Each counts for a byte more than it has.
        #expect(perform(60, waits: true))
        #expect(!perform(39) && !perform(1000))
        #expect(perform(38, isLast: true) && !perform(0))
        gate.signal()
        bench.run()
        #expect(answers == [60, 38])
        #expect(perform(1000, isLast: true))
        bench.run()
        #expect(answers == [60, 38, 1000])
    }
}
