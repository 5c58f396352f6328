extension SessionHooks {
    /// These hooks, and another one for completed tasks.
    package func observing(
        _ observe: @escaping @Sendable (SessionTask, TaskMetrics, SessionError?) -> Void
    ) -> SessionHooks {
        var hooks = self
        hooks.completed = { [completed] task, metrics, error in
            observe(task, metrics, error)
            completed?(task, metrics, error)
        }
        return hooks
    }
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
