import PinproxyClients
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySession
import PinproxyTLS

/// The resources of the control socket and the admin port. On the main loop.
final class ControlResources {
    typealias Reply = (ControlResponse) -> Void

    /// The daemon's answers.
    struct Daemon {
        /// Nil: it is ready.
        var unreadiness: () -> String?
        /// Nil: the configuration in force is the files'.
        var fallback: () -> String?
        var status: (@escaping (StatusReport) -> Void) -> Void
        var metrics: (MetricsText.Format, @escaping ([UInt8]) -> Void) -> Void
        var configuration: () -> ConfigurationReport
        var files: () -> FilesReport
        /// The local authority's certificate.
        var authority: () -> String
        /// The proxy auto-config script, for a client that used this host name.
        var script: (_ host: String?) -> String
        var reload: () -> ReloadReport
        /// Failure: the records can't be written.
        var learn: (LearnOrder) -> Result<LearnReport, StateFileProblem>
        /// For clients of the admin port.
        var gate: () -> AdminGate
    }

    private let daemon: Daemon
    private let tasks: TaskBoard
    private let cache: CacheDesk
    private let incidents: IncidentDesk

    init(daemon: Daemon, tasks: TaskBoard, cache: CacheDesk, incidents: IncidentDesk) {
        self.daemon = daemon
        self.tasks = tasks
        self.cache = cache
        self.incidents = incidents
    }

    /// - Parameter reply: called once, at once or later.
    func answer(_ request: ControlRequest, _ reply: @escaping Reply) {
        let resource = Resource(request.path)
        if let objection = daemon.gate().objection(to: request, needing: resource?.right ?? .fetch) {
            return reply(objection)
        }
        guard let resource else { return reply(Self.unknown) }
        guard request.method == resource.method || (request.method == .head && resource.method == .get) else {
            var response = ControlResponse.problem(405, "this resource takes \(resource.method.text) only")
            response.allow = resource.method
            return reply(response)
        }
        answer(resource, request, reply)
    }

    private enum Resource {
        case health, readiness, authority, script
        case page(StatusPage)
        case status, metrics, configuration, files, tasks, events
        case task(String)
        case order(TaskOrder, String)
        case reload, learn
        case cache(CacheDesk.Resource)
        case incidents(IncidentDesk.Resource)

        init?(_ path: [String]) {
            switch (path.first, path.count) {
            case ("healthz"?, 1): self = .health
            case ("readyz"?, 1): self = .readiness
            case ("ca.pem"?, 1): self = .authority
            case ("proxy.pac"?, 1): self = .script
            case (nil, _): self = .page(.index)
            case ("page.css"?, 1): self = .page(.style)
            case ("page.js"?, 1): self = .page(.script)
            case ("pins.js"?, 1): self = .page(.pinsScript)
            case ("refusals.js"?, 1): self = .page(.refusalsScript)
            case ("incidents.js"?, 1): self = .page(.incidentsScript)
            case ("icon.svg"?, 1): self = .page(.icon)
            case ("status"?, 1): self = .status
            case ("metrics"?, 1): self = .metrics
            case ("events"?, 1): self = .events
            case ("config"?, 1): self = .configuration
            case ("files"?, 1): self = .files
            case ("reload"?, 1): self = .reload
            case ("learn"?, 1): self = .learn
            case ("cache"?, 1): self = .cache(.figures)
            case ("cache"?, 2):
                guard let resource = CacheDesk.Resource(rawValue: path[1]), resource != .figures else { return nil }
                self = .cache(resource)
            case ("incidents"?, 1...):
                guard let resource = IncidentDesk.Resource(path.dropFirst()) else { return nil }
                self = .incidents(resource)
            case ("tasks"?, 1): self = .tasks
            case ("tasks"?, 2): self = .task(path[1])
            case ("tasks"?, 3):
                guard let order = TaskOrder(rawValue: path[2]) else { return nil }
                self = .order(order, path[1])
            default: return nil
            }
        }

        var method: Method {
            switch self {
            case .order, .reload, .learn, .cache(.purge), .incidents(.acknowledge): .post
            default: .get
            }
        }

        /// Required of clients of the admin port.
        var right: AdminGate.Right {
            switch self {
            case .health, .readiness, .authority, .script, .page: .fetch
            case .status, .metrics, .configuration, .tasks, .task, .events: .read
            case .order, .reload: .change
            case .learn, .files, .cache, .incidents: .own
            }
        }
    }

    /// A fallback is ready, too.
    private var readiness: ControlResponse {
        ControlResponse(["status": "ready"].merging(daemon.fallback().map { ["fallback": $0] } ?? [:]) { $1 })
    }

    private func answer(_ resource: Resource, _ request: ControlRequest, _ reply: @escaping Reply) {
        switch resource {
        case .health: reply(ControlResponse(["status": "alive"]))
        case .readiness:
            reply(daemon.unreadiness().map { .problem(503, $0) } ?? readiness)
        case .authority: reply(ControlResponse(Array(daemon.authority().utf8), type: "application/x-pem-file"))
        case .script:
            let host = request.host.flatMap { try? Authority.parse($0, defaultPort: 80).get() }?.host
            reply(ControlResponse(Array(daemon.script(host).utf8), type: ProxyScript.type))
        case .page(let file): reply(file.response)
        case .status: daemon.status { reply(ControlResponse($0)) }
        case .metrics:
            let format = MetricsText.Format(accept: request.accept)
            daemon.metrics(format) { reply(ControlResponse($0, type: format.type)) }
        case .events:
            var response = ControlResponse([], type: "text/event-stream")
            response.opensEvents = true
            response.showsPaths = daemon.gate().mayControl(request)
            reply(response)
        case .configuration: reply(ControlResponse(daemon.configuration()))
        case .files: reply(ControlResponse(daemon.files()))
        case .reload:
            let report = daemon.reload()
            reply(ControlResponse(report, status: report.cause == nil ? 200 : 422))
        case .learn: reply(learn(request))
        case .cache(let resource): reply(cache.answer(resource, request))
        case .incidents(let resource): reply(incidents.answer(resource, request))
        case .tasks:
            let showsPaths = daemon.gate().mayControl(request)
            tasks.list { list in reply(ControlResponse(showsPaths ? list : list.withoutPaths)) }
        case .task(let number): answerTask(number, nil, request, reply)
        case .order(let order, let number): answerTask(number, order, request, reply)
        }
    }

    private func learn(_ request: ControlRequest) -> ControlResponse {
        guard let order = LearnOrder(request.query) else {
            return .problem(400, "the parameters of /learn are until=UNIX-SECONDS or stop, and forget")
        }
        switch daemon.learn(order) {
        case .success(let report): return ControlResponse(report)
        case .failure(let problem): return .problem(503, "\(problem)")
        }
    }

    // MARK: Tasks

    /// - Parameter order: nil: the task is only shown.
    private func answerTask(_ text: String, _ order: TaskOrder?, _ request: ControlRequest, _ reply: @escaping Reply) {
        guard let number = UInt64(text) else {
            return reply(.problem(400, "\"\(ShownText(String(text.prefix(64))))\" is not the number of a task"))
        }
        let showsPaths = daemon.gate().mayControl(request)
        let answer = { (finding: TaskBoard.Finding) in reply(Self.response(finding, number, showsPath: showsPaths)) }
        guard let order else { return tasks.find(number, completion: answer) }
        tasks.order(order, number, because: "\(order.past) by \(request.door)", completion: answer)
    }

    private static func response(_ finding: TaskBoard.Finding, _ number: UInt64, showsPath: Bool) -> ControlResponse {
        switch finding {
        case .found(let task): ControlResponse(showsPath ? task : task.withoutPath)
        case .none: .problem(404, "no task \(number) is in flight")
        case .silent(let worker):
            .problem(
                503,
                """
                \(worker), which has the task, has not answered within \(WorkerInquiry.patience); it obeys once it \
                answers again
                """
            )
        }
    }

    private static let unknown = ControlResponse.problem(
        404,
        "there is no such resource; there are /, /healthz, /readyz, /metrics, /status, /config, /files, /events, "
            + "/tasks, /tasks/ID, /tasks/ID/suspend, /tasks/ID/resume, /tasks/ID/cancel, /reload, /learn, /cache, "
            + "/cache/responses, /cache/purge, /incidents, /incidents/ID, /incidents/ID/ack, /ca.pem and "
            + "/proxy.pac")
}

extension TaskSummary {
    /// For clients that may not control tasks: paths may be private.
    fileprivate var withoutPath: TaskSummary {
        var summary = self
        summary.path = ""
        return summary
    }
}

extension TaskList {
    fileprivate var withoutPaths: TaskList {
        TaskList(tasks: tasks.map(\.withoutPath), silentWorkers: silentWorkers)
    }
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
