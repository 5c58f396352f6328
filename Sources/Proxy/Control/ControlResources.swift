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
    private let tasks: TaskBoard

    init(daemon: Daemon, tasks: TaskBoard) {
        self.daemon = daemon
        self.tasks = tasks
    }

    /// - Parameter reply: called once, at once or later.
    func answer(_ request: ControlRequest, _ reply: @escaping Reply) {
        switch request.path.first {
        case "tasks"?: answerTasks(request, reply)
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

    // MARK: Tasks

    private func answerTasks(_ request: ControlRequest, _ reply: @escaping Reply) {
        let path = request.path
        let order = path.count == 3 ? TaskOrder(rawValue: path[2]) : nil
        if path.count > 3 || (path.count == 3 && order == nil) { return reply(Self.unknown) }
        let method: Method = order == nil ? .get : .post
        guard request.method == method else { return reply(only(method, request) { Self.unknown }) }
        if path.count == 1 { return tasks.list { reply(ControlResponse($0)) } }
        guard let number = UInt64(path[1]) else {
            return reply(.problem(400, "\"\(path[1].prefix(64))\" is not the number of a task"))
        }
        guard let order else { return tasks.find(number) { reply(Self.response($0, number)) } }
        tasks.order(order, number, because: "\(order.past) by \(request.peer)") { reply(Self.response($0, number)) }
    }

    private static func response(_ finding: TaskBoard.Finding, _ number: UInt64) -> ControlResponse {
        switch finding {
        case .found(let task): ControlResponse(task)
        case .none: .problem(404, "no task \(number) is under way")
        case .silent(let worker):
            .problem(503, "\(worker), which has the task, has not answered within \(TaskBoard.patience); it will obey when it goes on")
        }
    }

    private static let unknown = ControlResponse.problem(
        404, "there is no such resource; there are /healthz, /readyz, /status, /tasks, /tasks/ID, /tasks/ID/suspend, "
            + "/tasks/ID/resume, /tasks/ID/cancel, /reload and /learn")
}

extension TaskOrder {
    fileprivate var past: String {
        switch self {
        case .suspend: "suspended"
        case .resume: "resumed"
        case .cancel: "cancelled"
        }
    }
}
