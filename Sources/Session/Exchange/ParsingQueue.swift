import Dispatch
package import EventLoop
import Synchronization

/// Where bodies are parsed, judged and converted: off the workers, whose other clients would wait for a large one.
///
/// As many threads as half of the processors, and at least one. What waits is bounded in bytes.
package final class ParsingQueue: Sendable {
    /// Bytes of bodies that may wait or be under way, of all workers together.
    package static let capacity = 256 << 20

    private let queues: [DispatchQueue]
    private let capacity: Int
    private let waiting = Atomic<Int>(0)
    private let turn = Atomic<Int>(0)

    package init(threads: Int = max(1, Processors.available / 2), capacity: Int = ParsingQueue.capacity) {
        queues = (0..<threads).map { DispatchQueue(label: "pinproxy.parsing.\($0)", qos: .utility) }
        self.capacity = capacity
    }

    /// Does `work` on a thread of its own and calls `answer` with what came of it on the loop; never if the loop ends
    /// before. The answer should hold its objects weakly, since it may be released on another thread.
    /// - Parameter size: bytes of the body that it is done on.
    /// - Returns: false if too much waits already: nothing is done then.
    package func perform<Result: Sendable>(
        _ size: Int, on loop: EventLoop, _ work: @escaping @Sendable () -> Result, answer: @escaping (Result) -> Void
    ) -> Bool {
        // An empty body takes its place too.
        let size = size + 1
        guard waiting.add(size, ordering: .relaxed).newValue <= max(capacity, size) else {
            waiting.subtract(size, ordering: .relaxed)
            return false
        }
        let answer = LoopBound(answer, on: loop)
        let handle = loop.handle
        queues[turn.add(1, ordering: .relaxed).newValue % queues.count].async { [self] in
            let result = work()
            waiting.subtract(size, ordering: .relaxed)
            handle.post { answer.value(on: $0)(result) }
        }
        return true
    }
}
