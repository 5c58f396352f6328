import EventLoop
import Session

/// Asks workers from the main loop: each on its own thread, between two turns. One that doesn't answer in time is not
/// waited for.
struct WorkerInquiry {
    /// How long the workers have to answer.
    static let patience: Duration = .seconds(2)

    let loop: EventLoop
    let workers: [WorkerThread]

    /// - Parameters:
    ///   - question: asked on each worker's thread.
    ///   - completion: called once on the loop with the answers by worker; nil where there was none in time.
    func ask<Answer: Sendable>(
        _ question: @escaping @Sendable (Worker) -> Answer, completion: @escaping ([Answer?]) -> Void
    ) {
        Self.ask(workers, on: loop, question, completion: completion)
    }

    static func ask<Answer: Sendable>(
        _ workers: [WorkerThread], on loop: EventLoop, _ question: @escaping @Sendable (Worker) -> Answer,
        completion: @escaping ([Answer?]) -> Void
    ) {
        let round = Round(loop: loop, count: workers.count, completion: completion)
        let place = LoopBound(round, on: loop)
        let handle = loop.handle
        for (number, worker) in workers.enumerated() {
            worker.perform { worker in
                let answer = question(worker)
                handle.post { loop in place.value(on: loop).add(answer, from: number) }
            }
        }
    }

    /// One question to several workers.
    private final class Round<Answer> {
        private var answers: [Answer?]
        private var missing: Int
        private var completion: (([Answer?]) -> Void)?
        private var timer: Timer?
        /// Keeps the round alive until it ends, also when no worker is left to answer.
        private var selfWhileRunning: Round?

        init(loop: EventLoop, count: Int, completion: @escaping ([Answer?]) -> Void) {
            answers = Array(repeating: nil, count: count)
            missing = count
            self.completion = completion
            selfWhileRunning = self
            timer = Timer(loop: loop, owner: self, afterNanoseconds: WorkerInquiry.patience.nanoseconds) { $0.end() }
        }

        func add(_ answer: Answer, from number: Int) {
            answers[number] = answer
            missing -= 1
            if missing == 0 { end() }
        }

        private func end() {
            timer = nil
            selfWhileRunning = nil
            guard let completion else { return }
            self.completion = nil
            completion(answers)
        }
    }
}
