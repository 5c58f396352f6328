internal import ArgumentParser
internal import Daemon
internal import Glibc
internal import HTTPWire
internal import Session

struct TasksCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tasks",
        abstract: "The exchanges in flight, and control over one.",
        discussion: """
            A task is one request with its response, one tunnel, or one upgraded connection. Its number is unique \
            for the life of the proxy, and stands in the log's line of the exchange (task).

            suspend stops reading on both sides of a task, and its time-outs: both peers see nothing but a slow \
            connection. resume lets it go on. cancel ends both sides, so that neither can take a part for the \
            whole; a client that has nothing of a response yet is answered 403. The log says who it was.

            --json prints the tasks as the control socket gives them (docs/tasks.md).

            Exits 1 if no proxy is running, or it has no such task. Run this as the user that runs the proxy, or as root.

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

/// The options of every subcommand.
struct TaskOptions: ParsableArguments {
    @OptionGroup var configuration: ConfigurationOptions
    @Flag(help: "For programs.") var json = false

    func proxy() throws -> RunningProxy {
        let directory = try configuration.stateDirectory(for: try? configuration.file())
        return try RunningProxy.require(StateFiles(directory: directory))
    }
}

struct TasksListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the tasks under way.",
        discussion: """
            PROGRESS is the share of the response's body, or of the request's as long as there is none, where a head \
            said how long it is; else what is being waited for.
            """)

    @OptionGroup var options: TaskOptions
    @Flag(help: "Show them again every second, until interrupted.") var watch = false

    func validate() throws {
        if options.json && watch { throw ValidationError("--watch is for people, --json for programs: use one of them") }
    }

    func run() throws {
        var (list, isComplete) = try show()
        while watch {
            sleep(1)
            (list, isComplete) = try show()
        }
        // What is missing can't be told from what isn't there.
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

/// A subcommand about one task.
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
        commandName: "show", abstract: "Show all of one task.",
        discussion: """
            A transaction is the request's way over one connection; one that was tried again has several. Times are \
            from the task's beginning, but for name lookup, connect and TLS, which say how long each step took.
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
        commandName: "suspend", abstract: "Stop reading on both sides of a task, and its time-outs.")

    @OptionGroup var options: TaskOptions
    @Argument(help: "The task's number.") var id: UInt64

    func run() throws { try order("suspend", "suspended") }
}

struct TasksResumeCommand: ParsableCommand, TaskCommand {
    static let configuration = CommandConfiguration(commandName: "resume", abstract: "Let a suspended task go on.")

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
