import PinproxyEventLoop
package import PinproxySession

/// The tasks of all workers, for the main loop (``WorkerInquiry``). Silent workers are named, not awaited.
final class TaskBoard {
    enum Finding {
        case found(TaskSummary)
        case none
        /// The task's worker doesn't answer.
        case silent(worker: String)
    }

    private let loop: EventLoop
    private let workers: [WorkerThread]
    /// See ``LoopSession``.
    private let sessionCount: Int
    private let patience: Duration

    init(
        loop: EventLoop, workers: [WorkerThread], sessionCount: Int, patience: Duration = WorkerInquiry.patience
    ) {
        self.loop = loop
        self.workers = workers
        self.sessionCount = sessionCount
        self.patience = patience
    }

    /// - Parameter completion: called once on the loop.
    func list(_ completion: @escaping (TaskList) -> Void) {
        ask(workers) {
            $0.tasks
        } completion: { answers, silent in
            completion(TaskList(tasks: answers.flatMap { $0 }.sorted { $0.id < $1.id }, silentWorkers: silent))
        }
    }

    func find(_ number: UInt64, completion: @escaping (Finding) -> Void) {
        ask(number, completion: completion) { $0.task(number) }
    }

    /// - Parameters:
    ///   - cause: who orders it, for the log and the client.
    ///   - completion: called once on the loop. A silent worker obeys later.
    func order(_ order: TaskOrder, _ number: UInt64, because cause: String, completion: @escaping (Finding) -> Void) {
        ask(number, completion: completion) { $0.obey(order, task: number, because: cause) }
    }

    private func ask(
        _ number: UInt64, completion: @escaping (Finding) -> Void,
        _ question: @escaping @Sendable (Worker) -> TaskSummary?
    ) {
        let index = LoopSession.index(ofTask: number, of: sessionCount)
        guard let index, workers.indices.contains(index) else { return completion(.none) }
        ask([workers[index]], question) { answers, silent in
            if let worker = silent.first { return completion(.silent(worker: worker)) }
            completion(answers.compactMap { $0 }.first.map { .found($0) } ?? .none)
        }
    }

    private func ask<Answer: Sendable>(
        _ workers: [WorkerThread], _ question: @escaping @Sendable (Worker) -> Answer,
        completion: @escaping ([Answer], [String]) -> Void
    ) {
        WorkerInquiry(loop: loop, workers: workers, patience: patience).ask(question) { answers in
            completion(
                answers.compactMap { $0 }, answers.indices.filter { answers[$0] == nil }.map { workers[$0].name })
        }
    }
}

/// The answer of `GET /tasks`.
package struct TaskList: Codable, Sendable {
    package var tasks: [TaskSummary]
    /// Workers that did not answer in time: their tasks are missing.
    package var silentWorkers: [String]

    package init(tasks: [TaskSummary], silentWorkers: [String]) {
        self.tasks = tasks
        self.silentWorkers = silentWorkers
    }
}
