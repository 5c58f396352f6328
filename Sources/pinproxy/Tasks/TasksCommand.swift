internal import ArgumentParser
internal import Glibc
internal import PinproxyDaemon
internal import PinproxyHTTPWire
internal import PinproxySession

struct TasksCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tasks",
        abstract: "List, suspend and cancel the exchanges in flight.",
        discussion: """
            A task is one request with its response, one tunnel, or one upgraded connection. Its number is unique for \
            the life of the proxy, and is in the log line of its exchange (task).

            suspend stops reading on both sides of a task, and its timeouts: both peers see only a slow connection. \
            resume continues it. cancel ends both sides, so that neither can mistake a part for the whole; a client \
            that has received nothing of the response yet gets 403. The log says who gave the order.

            --json prints the tasks as the control socket gives them (docs/tasks.md).

            Exits 1 if no proxy is running, or it has no such task. Run this as the user that runs the proxy, or as \
            root.

            Examples:
              pinproxy tasks
              pinproxy tasks list --watch
              pinproxy tasks show 4711
              pinproxy tasks cancel 4711
            """,
        subcommands: [
            TasksListCommand.self, TasksShowCommand.self, TasksSuspendCommand.self, TasksResumeCommand.self,
            TasksCancelCommand.self,
        ],
        defaultSubcommand: TasksListCommand.self)
}

struct TaskOptions: ParsableArguments {
    @OptionGroup var configuration: ConfigurationOptions
    @Flag(help: "Print JSON.") var json = false

    func proxy() throws -> RunningProxy {
        try RunningProxy.require(try configuration.stateFiles())
    }
}

struct TasksListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the tasks in flight.",
        discussion: """
            PROGRESS is the share of the response's body (until there is one, of the request's) if a head gave its \
            length; else what is being waited for. PROTOCOLS are the client's and the origin's, if known. On a narrow \
            terminal PROTOCOLS, CLIENT, UP and DOWN are left out as far as the request needs the room.
            """)

    @OptionGroup var options: TaskOptions
    @Flag(help: "Show them again every second, until interrupted.") var watch = false

    func validate() throws {
        if options.json && watch {
            throw ValidationError("--watch is for people, --json for programs: use one of them")
        }
    }

    func run() throws {
        var (list, isComplete) = try show()
        while watch {
            sleep(1)
            (list, isComplete) = try show()
        }
        // A missing value looks like an absent one.
        if !isComplete, list.tasks.isEmpty { throw CommandFailure(code: 1) }
    }

    private func show() throws -> (TaskList, isComplete: Bool) {
        let list: TaskList = try options.proxy().ask(.get, "/tasks")
        if options.json {
            Standard.output(JSONText.of(list))
        } else {
            let isLive = watch && Terminal.isInteractive
            let text = TaskTable(list, width: Terminal.width, height: isLive ? Terminal.height : .max).text
            Standard.output((isLive ? Terminal.cleared : "") + text)
        }
        for worker in list.silentWorkers {
            Standard.error("pinproxy: \(worker) has not answered in time: its tasks are missing")
        }
        return (list, list.silentWorkers.isEmpty)
    }
}

private protocol TaskCommand: ParsableCommand {
    var options: TaskOptions { get }
    var id: UInt64 { get }
}

extension TaskCommand {
    fileprivate func order(_ verb: String, _ past: String) throws {
        let task: TaskSummary = try options.proxy().ask(.post, "/tasks/\(id)/\(verb)")
        if options.json { return Standard.output(JSONText.of(task)) }
        Standard.output("\(past): task \(task.id), \(task.request)")
    }
}

struct TasksShowCommand: ParsableCommand, TaskCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show a task in full.",
        discussion: """
            A transaction is one attempt over one connection; a request that was retried has several. Times are from \
            the task's beginning, except name lookup, connect and TLS, which say how long each step took.
            """)

    @OptionGroup var options: TaskOptions
    @Argument(help: "The task's number.") var id: UInt64

    func run() throws {
        let task: TaskSummary = try options.proxy().ask(.get, "/tasks/\(id)")
        Standard.output(options.json ? JSONText.of(task) : TaskText(task).text)
    }
}

struct TasksSuspendCommand: ParsableCommand, TaskCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend", abstract: "Stop reading on both sides of a task, and its timeouts.")

    @OptionGroup var options: TaskOptions
    @Argument(help: "The task's number.") var id: UInt64

    func run() throws { try order("suspend", "suspended") }
}

struct TasksResumeCommand: ParsableCommand, TaskCommand {
    static let configuration = CommandConfiguration(commandName: "resume", abstract: "Continue a suspended task.")

    @OptionGroup var options: TaskOptions
    @Argument(help: "The task's number.") var id: UInt64

    func run() throws { try order("resume", "resumed") }
}

struct TasksCancelCommand: ParsableCommand, TaskCommand {
    static let configuration = CommandConfiguration(commandName: "cancel", abstract: "End both sides of a task.")

    @OptionGroup var options: TaskOptions
    @Argument(help: "The task's number.") var id: UInt64

    func run() throws { try order("cancel", "cancelled") }
}

extension TaskSummary {
    /// The protocols of client and origin, as far as known: `h2 > http/1.1`.
    var protocols: String {
        let origin = transactions.last.flatMap(\.networkProtocol).map { "> \($0)" }
        return [`protocol`, origin].compactMap(\.self).joined(separator: " ")
    }

    /// The request, on one line fit for a terminal.
    var request: String {
        let authority = host.isEmpty ? "" : "\(host.contains(":") ? "[\(host)]" : host):\(port)"
        return "\(method) \(authority)\(path)".printable
    }
}

enum AmountText {
    static func bytes(_ count: UInt64) -> String {
        var value = Double(count)
        for unit in ["B", "KiB", "MiB"] {
            if value < 1024 { return unit == "B" ? "\(count) B" : "\(value.text(decimals: 1)) \(unit)" }
            value /= 1024
        }
        return "\(value.text(decimals: 1)) GiB"
    }

    static func time(_ seconds: Double) -> String {
        let whole = Int(seconds)
        if whole < 60 { return "\(seconds.text(decimals: 1))s" }
        if whole < 3600 { return "\(whole / 60)m\(whole % 60)s" }
        return "\(whole / 3600)h\(whole % 3600 / 60)m"
    }
}

struct TaskText {
    private let task: TaskSummary

    init(_ task: TaskSummary) { self.task = task }

    var text: String {
        var lines = [
            "task \(task.id): \(task.kind), \(task.state.rawValue), \(task.phase)", "request: \(task.request)",
            "client: \(task.client)\(Self.who(task))\(Self.spoken(task.protocol, task.stream))",
            "age: \(AmountText.time(task.age))",
            "up: \(Self.amount(task.bytesUp, task.totalUp))", "down: \(Self.amount(task.bytesDown, task.totalDown))",
        ]
        if task.status != 0 { lines.append("status: \(task.status)") }
        if let entry = task.entry { lines.append("entry: \(entry)") }
        if let pin = task.pin { lines.append("pin: \(pin)") }
        if let cause = task.cause { lines.append("cause: \(cause)") }
        for hop in task.hops ?? [] { lines.append("followed: \(hop.status) to \(hop.to)") }
        for (number, transaction) in task.transactions.enumerated() {
            lines.append("transaction \(number + 1): \(Self.way(transaction))")
            lines += Self.times(transaction)
        }
        return lines.map { $0.printable(longest: 1000) }.joined(separator: "\n")
    }

    /// By the kernel's word, as far as it is known.
    private static func who(_ task: TaskSummary) -> String {
        guard let user = task.clientUser else { return "" }
        let process = task.clientProcess.map { "process \($0)" + (task.clientExecutable.map { " (\($0))" } ?? "") }
        return [": " + (task.clientUserName ?? "user \(user)"), process, task.clientUnit].compactMap { $0 }.joined(
            separator: ", ")
    }

    private static func amount(_ done: UInt64, _ total: UInt64?) -> String {
        AmountText.bytes(done) + (total.map { ", of a body of \(AmountText.bytes($0))" } ?? "")
    }

    private static func way(_ transaction: TaskSummary.Transaction) -> String {
        let ends = [transaction.localAddress, transaction.remoteAddress].compactMap { $0 }.joined(separator: " to ")
        let name = spoken(transaction.networkProtocol, transaction.stream)
        return "\(ends)\(name), \(transaction.reused ? "reused" : "a new connection")"
    }

    private static func spoken(_ name: String?, _ stream: Int32?) -> String {
        (name.map { ", \($0)" } ?? "") + (stream.map { ", stream \($0)" } ?? "")
    }

    private static func times(_ transaction: TaskSummary.Transaction) -> [String] {
        let times: [(String, Double?)] = [
            ("name lookup took", transaction.nameLookup), ("connect took", transaction.connect),
            ("TLS took", transaction.tls),
            ("began at", transaction.began), ("request sent at", transaction.requestSent),
            ("first byte at", transaction.firstByte), ("last byte at", transaction.lastByte),
        ]
        return times.compactMap { name, time in time.map { "  \(name) \(($0 * 1000).text(decimals: 3)) ms" } }
    }
}
