import Synchronization

/// The outcome of a task, for logs and metrics.
package struct TaskEnding: Sendable {
    package let task: SessionTask
    /// Of the final response; nil if none began.
    package let status: Int?
    package let metrics: TaskMetrics
    /// Nil for a success.
    package let error: SessionError?
}

extension SessionHooks {
    /// These hooks, and one that is called once for each task when it ends, on the session's thread.
    package func observing(_ observe: @escaping @Sendable (TaskEnding) -> Void) -> SessionHooks {
        var hooks = self
        let statuses = Statuses()
        hooks.response = { [response] arrived, task in
            statuses.keep(arrived.status, of: task)
            return response?(arrived, task) ?? .allow
        }
        hooks.completed = { [completed] task, metrics, error in
            observe(TaskEnding(task: task, status: statuses.take(of: task), metrics: metrics, error: error))
            completed?(task, metrics, error)
        }
        return hooks
    }
}

/// Statuses of tasks under way. Sessions may share their hooks, so that a task's number is not enough.
private final class Statuses: Sendable {
    private let kept = Mutex<[ObjectIdentifier: Int]>([:])

    func keep(_ status: Int, of task: SessionTask) { kept.withLock { $0[ObjectIdentifier(task)] = status } }
    func take(of task: SessionTask) -> Int? { kept.withLock { $0.removeValue(forKey: ObjectIdentifier(task)) } }
}

extension SessionError {
    /// The kind of failure, for logs and metrics: one of a dozen.
    package var kind: String {
        switch self {
        case .configuration, .invalidRequest, .plainToPinnedHost: "invalid_request"
        case .cancelled, .invalidated: "cancelled"
        case .cannotFindHost: "name_resolution"
        case .cannotConnect, .noNetwork, .proxy: "connection"
        case .timedOut: "timeout"
        case .secureConnectionFailed, .clientCertificate: "tls"
        case .untrusted: "untrusted"
        case .pinMismatch: "pin_mismatch"
        case .connectionLost: "connection_lost"
        case .badResponse, .unacceptable, .unacceptableStatus, .redirect: "response"
        case .bodyTooLong, .bodiesTooLong: "body_too_long"
        default: "local"
        }
    }
}
