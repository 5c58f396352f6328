internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import Logging
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyEventLoop
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

/// The proxy of `pinproxy exec --start`. It ends after its starter and the last run. Not a command for users.
struct ExecProxy: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "exec-proxy")
    /// The socket to the process that has started it.
    static let socket: CInt = 3

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        guard fcntl(Self.socket, F_SETFD, FD_CLOEXEC) == 0 else {
            throw CommandFailure(code: CommandFailure.usage, message: "exec-proxy is for pinproxy exec alone")
        }
        // Other open descriptors are for the command.
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
            if let descriptor = CInt(name), descriptor > Self.socket { close(descriptor) }
        }
        let snapshot = Snapshot(forRuns: try options.load(isProxy: true), of: geteuid())
        let file = try options.fileForProxy()
        let state = StateFiles(directory: snapshot.stateDirectory)
        try state.createForProxy()
        let lock: ProcessLock
        do {
            lock = try ProcessLock(state.own)
        } catch let failure as CommandFailure {
            try DescriptorMessage.send(StarterWord.taken(failure.message ?? "").bytes, over: Self.socket)
            throw CommandFailure(code: 1)
        }
        let log: CInt
        do throws(FileProblem) {
            log = try state.own.openForWriting(StateFiles.execLog, O_WRONLY | O_APPEND, mode: 0o600)
        } catch {
            throw CommandFailure(
                "\(state.directory)/\(StateFiles.execLog): \(error); the proxy needs its own writable state directory: "
                    + "name one with --state-directory")
        }
        guard ftruncate(log, 0) == 0 else {
            throw CommandFailure("\(state.directory)/\(StateFiles.execLog): \(systemReason())")
        }
        let output: LogOutput
        do {
            output = try LogOutput(descriptor: log, format: .json)
        } catch {
            throw CommandFailure("the log can't be written: \(Run.message(of: error))")
        }
        output.apply(snapshot.log)
        defer { output.finish() }
        output.outliveCrashes()
        var notices = DaemonNotices()
        notices.starter = Self.socket
        // Standard error has no reader any more.
        notices.ready = { dup2(log, STDERR_FILENO) }
        // The first configuration goes when another is in force.
        let directory = snapshot.stateDirectory
        do {
            try ProxyDaemon(
                snapshot: consume snapshot, logger: Logger(label: "pinproxy") { _ in EventLogHandler(output: output) },
                output: output,
                notices: notices,
                load: { () throws(ConfigurationProblems) in
                    Snapshot(forRuns: try Snapshot.load(file, stateDirectory: directory), of: geteuid())
                }
            ).run()
        } catch {
            throw CommandFailure(code: Run.code(of: error), message: "\(error)")
        }
        withExtendedLifetime(lock) {}
    }
}

/// The proxy that this process has started for its run, as it sees it.
final class StartedProxy {
    /// For what is in flight when the run ends.
    private static let patienceSeconds = 5

    private let socket: CInt

    /// Starts it and waits until it is ready.
    /// - Returns: nil if another one is running meanwhile.
    /// - Throws: why it can't start. Standard error may have the details.
    init?(_ options: ConfigurationOptions) throws {
        let (near, far) = try DescriptorMessage.pair()
        socket = near
        let process: pid_t
        do {
            defer { close(far) }
            process = try Self.spawn(options, far)
        }
        guard let bytes = try DescriptorMessage.receive(from: near)?.bytes, let word = StarterWord(bytes) else {
            var status: CInt = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            let code = status & 0x7F == 0 ? (status >> 8) & 0xFF : 1
            throw CommandFailure(code: code == 0 ? 1 : code, message: "--start: the proxy couldn't be started")
        }
        switch word {
        case .ready, .kept: break
        case .taken:
            waitpid(process, nil, 0)
            return nil
        }
    }

    deinit { close(socket) }

    private static func spawn(_ options: ConfigurationOptions, _ socket: CInt) throws -> pid_t {
        var arguments = ["pinproxy", "exec-proxy", "--config", try options.fileForProxy()]
        if let directory = options.stateDirectory { arguments += ["--state-directory", directory] }
        var program = ProgramStart("/proc/self/exe", arguments)
        program.descriptors = [
            (ExecProxy.socket, .descriptor(socket)), (STDIN_FILENO, .nothing), (STDOUT_FILENO, .nothing),
        ]
        // The terminal's keys are for the command.
        program.group = .ownSession
        do {
            return try program.start()
        } catch {
            throw CommandFailure("--start: the proxy couldn't be started: \(error.reason)")
        }
    }

    /// Ends the proxy after the run, unless others use it, and waits for its end.
    func end() {
        shutdown(socket, CInt(SHUT_WR))
        var wanted = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        let deadline = ContinuousClock.now + .seconds(Self.patienceSeconds)
        while ContinuousClock.now < deadline {
            // Its end, or that it is kept.
            if poll(&wanted, 1, 100) > 0 { return }
        }
    }
}
