import PinproxyClients
import PinproxyEventLoop
import PinproxySession

final class WorkerThread: Sendable {
    let load: WorkerLoad
    let name: String
    private let thread: LoopThread<Worker>

    private init(name: String, load: WorkerLoad, thread: LoopThread<Worker>) {
        self.name = name
        self.load = load
        self.thread = thread
    }

    static func start(
        number: Int, context: ProxyContext, configuration: ActiveConfiguration, vacancy: Vacancy
    ) throws -> WorkerThread {
        let load = WorkerLoad(vacancy)
        let name = "worker \(number + 1)"
        let thread = try LoopThread.start(name, stackSize: 1 << 20) { loop in
            try Worker(loop: loop, number: number, shared: context, configuration: configuration, load: load)
        }
        return WorkerThread(name: name, load: load, thread: thread)
    }

    func perform(_ work: @escaping @Sendable (Worker) -> Void) { thread.perform(work) }

    func handOver(_ socket: consuming Descriptor, _ arrival: Arrival) {
        load.handedOver()
        let raw = socket.release()
        guard !thread.perform({ $0.adopt(Descriptor(owning: raw), arrival) }) else { return }
        _ = Descriptor(owning: raw)
        load.adopted()
        load.ended()
    }

    func stop() { thread.stop() }
}

/// Asks workers from the main loop, each on its own thread and between two turns. It doesn't wait for a late answer.
struct WorkerInquiry {
    static let patience: Duration = .seconds(2)

    let loop: EventLoop
    let workers: [WorkerThread]
    var patience = Self.patience

    /// - Parameters:
    ///   - question: asked on each worker's thread.
    ///   - completion: called once on the loop with the answers by worker; nil: too late.
    func ask<Answer: Sendable>(
        _ question: @escaping @Sendable (Worker) -> Answer, completion: @escaping ([Answer?]) -> Void
    ) {
        let round = LoopBound(
            Round(loop: loop, count: workers.count, within: patience, completion: completion), on: loop)
        for (number, worker) in workers.enumerated() {
            worker.perform { worker in
                let answer = question(worker)
                round.post { $0.add(answer, from: number) }
            }
        }
    }

    private final class Round<Answer> {
        private var answers: [Answer?]
        private var missing: Int
        private var completion: (([Answer?]) -> Void)?
        private var timer: Timer?
        /// Keeps the round alive until it ends, also without answers.
        private var selfWhileRunning: Round?

        init(loop: EventLoop, count: Int, within patience: Duration, completion: @escaping ([Answer?]) -> Void) {
            answers = Array(repeating: nil, count: count)
            missing = count
            self.completion = completion
            selfWhileRunning = self
            timer = Timer(loop: loop, owner: self, afterNanoseconds: patience.nanoseconds) { $0.end() }
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
