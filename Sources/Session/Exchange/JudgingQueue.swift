import Dispatch
import EventLoop
import Glibc
import Serialization
import Synchronization

/// Where bodies are judged: off the workers, whose other clients would wait for a large one.
///
/// As many threads as half of the processors, and at least one. What waits is bounded in bytes.
package final class JudgingQueue: Sendable {
    /// Bytes of bodies that may wait or be under way, of all workers together.
    package static let capacity = 256 << 20

    private let queues: [DispatchQueue]
    private let capacity: Int
    private let waiting = Atomic<Int>(0)
    private let next = Atomic<Int>(0)

    package init(threads: Int = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2), capacity: Int = JudgingQueue.capacity) {
        queues = (0..<threads).map { DispatchQueue(label: "pinproxy.judging.\($0)", qos: .utility) }
        self.capacity = capacity
    }

    /// Judges `body` on a thread of its own and calls `answer` on the loop; never if the loop ends before.
    /// - Returns: false if too much waits already: nothing is judged then.
    func judge(
        _ body: [UInt8], by judgement: BodyJudgement, on loop: EventLoop, _ answer: @escaping (BodyVerdict) -> Void
    ) -> Bool {
        // An empty body takes its place too.
        let size = body.count + 1
        guard waiting.add(size, ordering: .relaxed).newValue <= capacity || size > capacity else {
            waiting.subtract(size, ordering: .relaxed)
            return false
        }
        let answer = LoopBound(answer, on: loop)
        let handle = loop.handle
        let turn = next.add(1, ordering: .relaxed).newValue
        queues[turn % queues.count].async { [self] in
            let verdict = judgement.verdict(on: body)
            waiting.subtract(size, ordering: .relaxed)
            handle.post { answer.value(on: $0)(verdict) }
        }
        return true
    }
}
