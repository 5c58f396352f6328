import HTTPWire
import Session
import TLS

/// What the control socket answers: the resources, and who looks after each. On the main loop.
final class ControlResources {
    typealias Reply = (ControlResponse) -> Void

    /// What is asked of the daemon itself.
    struct Daemon {
        /// Why it isn't ready; nil if it is.
        var unreadiness: () -> String?
        var status: () -> StatusReport
        var reload: () -> ReloadReport
        /// Nil: the answer; else why what was recorded can't be written.
        var learn: (LearnOrder) -> Result<LearnReport, StateFileProblem>
    }

    private let daemon: Daemon

    init(daemon: Daemon) {
        self.daemon = daemon
    }

    /// - Parameter reply: called once, at once or later.
    func answer(_ request: ControlRequest, _ reply: @escaping Reply) {
        switch request.path.first {
        case let name? where request.path.count == 1: reply(answer(name, request))
        default: reply(Self.unknown)
        }
    }

    private func answer(_ name: String, _ request: ControlRequest) -> ControlResponse {
        switch name {
        case "healthz": return only(.get, request) { ControlResponse(["status": "alive"]) }
        case "readyz":
            return only(.get, request) {
                daemon.unreadiness().map { .problem(503, $0) } ?? ControlResponse(["status": "ready"])
            }
        case "status": return only(.get, request) { ControlResponse(daemon.status()) }
        case "reload":
            return only(.post, request) {
                let report = daemon.reload()
                return ControlResponse(report, status: report.cause == nil ? 200 : 422)
            }
        case "learn":
            return only(.post, request) {
                guard let order = LearnOrder(request.query) else {
                    return .problem(400, "the parameters of /learn are until=UNIX-SECONDS or stop, and forget")
                }
                switch daemon.learn(order) {
                case .success(let report): return ControlResponse(report)
                case .failure(let problem): return .problem(503, "\(problem)")
                }
            }
        default: return Self.unknown
        }
    }

    private func only(
        _ method: Method, _ request: ControlRequest, _ answer: () -> ControlResponse
    ) -> ControlResponse {
        guard request.method == method else {
            var response = ControlResponse.problem(405, "this resource takes \(method.text) only")
            response.allow = method
            return response
        }
        return answer()
    }

    private static let unknown = ControlResponse.problem(
        404, "there is no such resource; there are /healthz, /readyz, /status, /reload and /learn")
}
