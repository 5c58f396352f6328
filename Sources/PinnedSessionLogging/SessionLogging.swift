public import Logging
public import PinnedSession

extension SessionHooks {
    /// These hooks, and a line of swift-log for each task that ends.
    ///
    /// A success is logged at `level`, a failure at `failures`, and pins that don't match at `error`, since that may be
    /// an attack. Lines have the method, the URL without its query, status, duration, bytes and the cause: no fields,
    /// bodies, parameters or credentials.
    ///
    /// ```swift
    /// let session = try await SessionManager.start(hooks: SessionHooks().logging(to: Logger(label: "http")))
    /// ```
    /// Called on the session's thread: a log handler that blocks stops its requests.
    public func logging(
        to logger: Logger, level: Logger.Level = .debug, failures: Logger.Level = .notice
    ) -> SessionHooks {
        observing { task, metrics, error in
            let metadata = metadata(of: task, metrics, error)
            switch error {
            case nil: logger.log(level: level, "request completed", metadata: metadata)
            case .pinMismatch: logger.log(level: .error, "request failed", metadata: metadata)
            default: logger.log(level: failures, "request failed", metadata: metadata)
            }
        }
    }
}

/// Descriptions of requests and errors hide what may be secret.
private func metadata(of task: SessionTask, _ metrics: TaskMetrics, _ error: SessionError?) -> Logger.Metadata {
    var metadata: Logger.Metadata = [
        "task": "\(task.id)", "request": "\(task.request)", "duration": "\(metrics.duration)",
        "sent": "\(metrics.sent)", "received": "\(metrics.received)",
    ]
    if let status = metrics.status { metadata["status"] = "\(status)" }
    if metrics.redirects > 0 { metadata["redirects"] = "\(metrics.redirects)" }
    if let last = metrics.transactions.last {
        metadata["protocol"] = "\(last.networkProtocol)"
        metadata["peer"] = "\(last.remoteAddress)"
        metadata["reused"] = "\(last.isReused)"
    }
    if let error {
        metadata["error"] = "\(error)"
        metadata["error.type"] = "\(error.kind)"
    }
    return metadata
}
