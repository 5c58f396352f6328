internal import ArgumentParser
internal import Glibc
internal import Logging
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyEventLoop
internal import PinproxyRecords
internal import PinproxySecurity

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", _superCommandName: Pinproxy.name,
        abstract: "Run the proxy in the foreground.",
        discussion: """
            Creates its local authority on the first start. The log goes to standard error: text on a \
            terminal, JSON lines otherwise; as a systemd service it goes to the journal, with a field for each value.

            If the configuration is invalid at a start, the proxy uses its copy of the last valid one, in the state \
            directory; see --no-fallback.

            SIGHUP reloads the configuration; pinproxy reload does too, and reports the result. SIGTERM or Ctrl-C \
            stops the proxy once the exchanges in flight are done; a second one stops it at once.

            Examples:
              pinproxy run
              pinproxy run --config config/pinproxy.yaml
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(
        help: ArgumentHelp(
            "Hand over to the next proxy at a stop.",
            discussion: """
                For a service manager: the process that it starts runs the proxy as its child. When stopped, it ends \
                at once, so that the next proxy serves new clients, while this one finishes its exchanges \
                (timeouts.handover).
                """))
    var handover = false

    @Flag(
        name: .customLong("no-fallback"),
        help: ArgumentHelp(
            "Never start with the last valid configuration.",
            discussion: """
                By default, the proxy keeps a copy of each configuration that it applies. If the configuration is \
                invalid at a start, the proxy uses the copy and logs config.fallback. With this flag, it keeps no \
                copy, and such a start fails.
                """))
    var forbidsFallback = false

    func run() throws {
        CoreFiles.forbid()
        let supervisor = handover ? try Supervisor.forkProxy() : nil
        let file = try options.fileForProxy()
        let kept = KeptConfiguration(in: try options.stateDirectory(for: file))
        if forbidsFallback { kept.forget() }
        let (snapshot, fallback) = try options.load(orKept: forbidsFallback ? nil : kept)
        let state = StateFiles(directory: snapshot.stateDirectory)
        try state.createForProxy()
        // A reload that comes before the daemon listens to signals waits for it.
        var early = sigset_t()
        sigemptyset(&early)
        sigaddset(&early, SIGHUP)
        pthread_sigmask(SIG_BLOCK, &early, nil)
        var lock: ProcessLock? = try ProcessLock(state.own, within: supervisor == nil ? .zero : Self.handoverPatience)
        let leftovers = NewFile.removeLeftovers(
            of: state.files + snapshot.authority.names(in: state.directory), in: state.own)
        let journal = SystemJournal.send
        if snapshot.log.format == .journald, journal == nil {
            throw CommandFailure(
                "log.format is journald in \(file), but the journal (/run/systemd/journal/socket) or libsystemd is "
                    + "missing; write auto"
            )
        }
        let output: LogOutput
        do {
            output = try .standardError(
                snapshot.log, journal: journal, isJournalUsual: journal != nil && SystemJournal.isStandardError)
        } catch {
            throw CommandFailure("the log can't be written: \(Self.message(of: error))")
        }
        defer { output.finish() }
        output.outliveCrashes()
        let logger = Logger(label: "pinproxy") { _ in EventLogHandler(output: output) }
        if let problem = lock?.problem {
            logger.warning(
                "state.unwritable",
                metadata: [
                    "file": "\(state.directory)/\(StateFiles.processID)", "cause": "\(problem)",
                    "effect": """
                    the proxy serves without it: pinproxy status, reload, tasks and learn may not find it, and a \
                    second proxy may use \(snapshot.stateDirectory) too; make room there, or make it writable, and \
                    restart the proxy
                    """,
                ])
        }
        if !leftovers.isEmpty {
            logger.notice(
                "state.leftovers",
                metadata: [
                    "files": "\(leftovers.joined(separator: ", "))", "effect": "removed: their writer was killed",
                ])
        }
        // The first configuration goes when another is in force.
        let directory = snapshot.stateDirectory
        var notices = Self.notices
        notices.supervisor = supervisor
        notices.handedOver = { lock = nil }
        do {
            let daemon = try ProxyDaemon(
                snapshot: consume snapshot, logger: logger, output: output, notices: notices,
                inherited: ServiceNotifier.sockets(), kept: forbidsFallback ? nil : kept, fallback: fallback,
                load: { () throws(ConfigurationProblems) in
                    try Snapshot.load(file, stateDirectory: directory)
                })
            try daemon.run()
        } catch {
            throw CommandFailure(code: Self.code(of: error), message: Self.message(of: error))
        }
        withExtendedLifetime(lock) {}
    }

    /// Time for a proxy to hand over after its main process was killed.
    private static let handoverPatience = Duration.seconds(5)

    /// Errors that would recur at the next start have the exit code of configuration errors, so that none is tried.
    static func code(of error: any Error) -> Int32 {
        let isOfConfiguration = error is MissingSocket || (error as? AuthorityError)?.isOfConfiguration == true
        return isOfConfiguration ? CommandFailure.configuration : 1
    }

    static func message(of error: any Error) -> String {
        guard let error = error as? SystemError, error.isLackOfThreads || error.isLackOfProcesses else {
            return "\(error)"
        }
        return "\(error): raise TasksMax= in pinproxy.service, ulimit -u, or the container's limit of processes"
    }

    static var notices: DaemonNotices {
        var notices = DaemonNotices()
        notices.ready = ServiceNotifier.ready
        notices.reloading = ServiceNotifier.reloading
        notices.stopping = ServiceNotifier.stopping
        notices.alive = ServiceNotifier.alive
        if let interval = ServiceNotifier.watchdogNanoseconds { notices.aliveNanoseconds = interval }
        notices.listening = ServiceNotifier.store
        notices.notListening = ServiceNotifier.forget
        return notices
    }
}

extension AuthoritySettings {
    /// The names of its files that are in that directory.
    fileprivate func names(in directory: String) -> [String] {
        AuthorityFiles(certificate: certificatePath, key: privateKeyPath).paths.filter {
            PathText.directory(of: $0) == directory
        }.map(PathText.name)
    }
}
