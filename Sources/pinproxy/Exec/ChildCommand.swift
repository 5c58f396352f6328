internal import Glibc
internal import PinproxyClients
internal import PinproxyEventLoop
internal import PinproxyIsolation

/// A command that runs as a child, as if it had replaced this process: signals, stops and waits reach the command.
///
/// Both are in one process group. This process ignores signals from the terminal, and passes on those from other
/// processes.
final class ChildCommand {
    enum Ending: Equatable {
        case exited(Int32)
        case signalled(Int32)
    }

    /// Signals to pass on. Not those of faults in this process, nor those that stop a background process that uses the
    /// terminal: they should stop this one too.
    private static let passedOn: [CInt] =
        [
            SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGTSTP, SIGCONT, SIGWINCH,
            SIGURG,
            SIGPOLL, SIGPWR, SIGXCPU,
        ] + Array(34...64)
    /// Signals of timers, which this process may have set before it became pinproxy. A child doesn't inherit timers.
    private static let timers: Set<CInt> = [SIGALRM, SIGVTALRM, SIGPROF]
    /// While the proxy isn't running.
    private static let retryMilliseconds: CInt = 1000

    private let process: pid_t
    private let signals: SignalDescriptor
    /// The signals that were blocked before.
    private let mask: sigset_t

    private init(_ process: pid_t, _ signals: consuming SignalDescriptor, _ mask: sigset_t) {
        self.process = process
        self.signals = signals
        self.mask = mask
    }

    // MARK: The start

    /// Starts it with the environment of this process, found by PATH.
    /// - Throws: 127 if there is no such command, 126 if it can't be run.
    static func start(_ arguments: [String]) throws -> ChildCommand {
        try begin(arguments[0]) { mask throws(SystemError) in
            do throws(SystemError) {
                return try spawn(arguments[0], arguments, mask: mask)
            } catch {
                guard error.code == ENOEXEC, let script = path(of: arguments[0]) else { throw error }
                // A script without an interpreter line, run as execvp(3) would.
                return try spawn("/bin/sh", ["/bin/sh", script] + arguments.dropFirst(), mask: mask)
            }
        }
    }

    /// Starts it in private surroundings. Call it while there is one thread.
    /// - Throws: 126 also if it can't have them.
    static func start(
        _ arguments: [String], in surroundings: CommandSurroundings
    ) throws -> (command: ChildCommand, CommandSurroundings.Entered) {
        let (near, far) = try DescriptorMessage.pair()
        defer { close(near) }
        let command: ChildCommand
        do {
            defer { close(far) }
            command = try begin("pinproxy") { mask throws(SystemError) in
                try ExecFork.start(arguments, in: surroundings, tellingOver: far, mask: mask)
            }
        }
        switch try ExecFork.outcome(of: command.process, in: surroundings, over: near) {
        case .entered(let entered): return (command, entered)
        case .refused(let cause):
            command.giveUp()
            throw SurroundingsRefused(cause: cause)
        case .notRun(let problem): throw notRun(arguments[0], problem)
        }
    }

    /// Restores the signal mask, so that another command can be started.
    private func giveUp() {
        while waitpid(process, nil, 0) < 0, errno == EINTR {}
        var mask = mask
        pthread_sigmask(SIG_SETMASK, &mask, nil)
    }

    private static func begin(_ name: String, _ spawn: (sigset_t) throws(SystemError) -> pid_t) throws -> ChildCommand {
        var blocked = sigset_t()
        var before = sigset_t()
        sigemptyset(&blocked)
        for signal in passedOn + [SIGCHLD, SIGPIPE] { sigaddset(&blocked, signal) }
        pthread_sigmask(SIG_BLOCK, &blocked, &before)
        // If the signal is ignored (which is inherited), children vanish with their status.
        signal(SIGCHLD, SIG_DFL)
        let signals = try SignalDescriptor(passedOn + [SIGCHLD])
        do throws(SystemError) {
            return ChildCommand(try spawn(before), signals, before)
        } catch {
            pthread_sigmask(SIG_SETMASK, &before, nil)
            throw notRun(name, error.code)
        }
    }

    private static func notRun(_ name: String, _ problem: CInt) -> CommandFailure {
        CommandFailure(
            code: problem == ENOENT || problem == ENOTDIR ? 127 : 126,
            message: "\(name): \(String(cString: strerror(problem)))")
    }

    private static func spawn(_ file: String, _ arguments: [String], mask: sigset_t) throws(SystemError) -> pid_t {
        // Open descriptors that aren't close-on-exec stay open for it.
        var program = ProgramStart(file, arguments)
        program.blockedSignals = mask
        return try program.start()
    }

    /// Its path by PATH, as a shell finds it.
    static func path(of command: String) -> String? {
        if command.contains("/") { return command }
        let path = getenv("PATH").map { String(cString: $0) } ?? "/bin:/usr/bin"
        return path.split(separator: ":", omittingEmptySubsequences: false)
            .map { $0.isEmpty ? command : "\($0)/\(command)" }.first { access($0, X_OK) == 0 }
    }

    // MARK: While it runs

    /// Waits for its end, and handles news from its proxy and its door meanwhile.
    /// - Parameter told: called for each refusal.
    func wait(watching session: ProxySession, _ door: ExecDoor?, _ told: (RunRefusal) -> Void) -> Ending {
        while true {
            var wanted = [
                pollfd(fd: signals.raw, events: Int16(POLLIN), revents: 0),
                pollfd(fd: session.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: door?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&wanted, 3, session.isAwaitingProxy ? Self.retryMilliseconds : -1)
            if count == 0 { session.beginAgain() }
            if wanted[1].revents != 0 { session.receive(told) }
            if wanted[2].revents != 0, let door { session.receive(from: door, told) }
            while let arrival = signals.next() {
                if arrival.signal == SIGCHLD {
                    if let ending = reap() { return ending }
                } else {
                    passOn(arrival)
                }
            }
        }
    }

    private func passOn(_ arrival: SignalDescriptor.Arrival) {
        // A signal from the command to its group has already reached the command.
        guard let sender = arrival.sender else {
            if Self.timers.contains(arrival.signal) { kill(process, arrival.signal) }
            return
        }
        if sender != process { kill(process, arrival.signal) }
    }

    /// Reaps all children: as the first process of a container this one has others' children too.
    private func reap() -> Ending? {
        var ending: Ending?
        var status: CInt = 0
        while true {
            let child = waitpid(-1, &status, WNOHANG | WUNTRACED)
            if child == 0 || (child < 0 && errno != EINTR) { return ending }
            guard child == process else { continue }
            if status & 0xFF == 0x7F {
                stop(by: (status >> 8) & 0xFF)
            } else if status & 0x7F == 0 {
                ending = .exited((status >> 8) & 0xFF)
            } else {
                ending = .signalled(status & 0x7F)
            }
        }
    }

    /// Stops with the command, so that the shell takes the terminal back; continues with it.
    private func stop(by signal: CInt) {
        if signal == SIGSTOP {
            kill(getpid(), SIGSTOP)
        } else {
            Self.takeDefault(of: signal)
        }
        kill(process, SIGCONT)
    }

    /// Applies a signal's default action.
    private static func takeDefault(of signal: CInt) {
        var (action, before) = (sigaction(), sigaction())
        var (set, mask) = (sigset_t(), sigset_t())
        sigemptyset(&set)
        sigaddset(&set, signal)
        sigaction(signal, &action, &before)
        // While blocked, it merges with the terminal's signal, which may be pending: otherwise the process would stop
        // twice.
        kill(getpid(), signal)
        pthread_sigmask(SIG_UNBLOCK, &set, &mask)
        pthread_sigmask(SIG_SETMASK, &mask, nil)
        sigaction(signal, &before, nil)
    }
}

extension ChildCommand.Ending {
    func imitate() -> Never {
        switch self {
        case .exited(let code): exit(code)
        case .signalled(let number):
            // The command has already dumped its core.
            var none = rlimit(rlim_cur: 0, rlim_max: 0)
            setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
            signal(number, SIG_DFL)
            var set = sigset_t()
            sigemptyset(&set)
            sigaddset(&set, number)
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
            kill(getpid(), number)
            exit(128 + number)
        }
    }
}
