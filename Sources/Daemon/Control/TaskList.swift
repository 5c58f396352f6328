package import Session

/// What `GET /tasks` answers.
package struct TaskList: Codable, Sendable {
    /// In the order of their numbers.
    package var tasks: [TaskSummary]
    /// Workers that did not answer in time: their tasks are missing.
    package var silentWorkers: [String]

    package init(tasks: [TaskSummary], silentWorkers: [String]) {
        self.tasks = tasks
        self.silentWorkers = silentWorkers
    }
}
