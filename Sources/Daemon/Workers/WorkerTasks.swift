import Clients
import Session

/// What may be asked of one task.
enum TaskOrder: String, Sendable {
    case suspend, resume, cancel
}

/// The tasks of a worker's clients. They are found by looking through the clients: a request costs nothing for it.
extension Worker {
    /// Those under way.
    var tasks: [TaskSummary] {
        everyClient.compactMap { client in
            guard let task = client.task else { return nil }
            // Without a log nobody has asked: whoever looks once more finds the answer.
            client.askPeer()
            return task
        }
    }

    /// The task of that number, if it is under way.
    func task(_ number: UInt64) -> TaskSummary? { client(withTask: number)?.task }

    /// - Parameter cause: who orders it, for the log.
    /// - Returns: the task as it is after that; nil if there is none under way with that number.
    func obey(_ order: TaskOrder, task number: UInt64, because cause: String) -> TaskSummary? {
        guard let client = client(withTask: number) else { return nil }
        switch order {
        case .suspend: client.suspendTask(cause)
        case .resume: client.resumeTask(cause)
        case .cancel: client.cancelTask(cause)
        }
        return client.task ?? client.completedTask
    }

    private func client(withTask number: UInt64) -> ClientConnection? {
        everyClient.first { $0.record.number == number && $0.task != nil }
    }
}
