internal import PinproxyClients
internal import PinproxyEventLoop
internal import Glibc
internal import PinproxyIsolation

/// A command that runs as a child, as if in this process's place: signals, stops and waits reach the command.
///
/// Both are in one process group. This process ignores the terminal's keys, and passes on what other processes send it.
final class ChildCommand {
    enum Ending: Equatable {
        case exited(Int32)
        case signalled(Int32)
    }

    /// What is passed on. Not the signals of faults in this process, nor those that stop a process that uses the
    /// terminal from the background: that is what should happen to this one too.
    private static let passedOn: [CInt] =
        [
            SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGTSTP, SIGCONT, SIGWINCH,
            SIGURG,
            SIGPOLL, SIGPWR, SIGXCPU,
        ] + Array(34...64)
    /// Set by this process for itself before it became pinproxy, and not inherited by a child.
    private static let timers: Set<CInt> = [SIGALRM, SIGVTALRM, SIGPROF]
    /// While the proxy is away.
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
                // A script without a first line that names its interpreter, as execvp(3) takes it.
                return try spawn("/bin/sh", ["/bin/sh", script] + arguments.dropFirst(), mask: mask)
            }
        }
    }

    /// The same with surroundings of its own. To be called while there is one thread.
    /// - Throws: 126 if it can't have them, too.
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

    /// Leaves the signals as they were, so that another one can be started.
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
        // Where it is ignored (which is inherited) children vanish with their status.
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
        // All descriptors that are open and not marked stay open for it.
        var program = ProgramStart(file, arguments)
        program.blockedSignals = mask
        return try program.start()
    }

    /// Where it is found by PATH, as a shell does.
    static func path(of command: String) -> String? {
        if command.contains("/") { return command }
        let path = getenv("PATH").map { String(cString: $0) } ?? "/bin:/usr/bin"
        return path.split(separator: ":", omittingEmptySubsequences: false)
            .map { $0.isEmpty ? command : "\($0)/\(command)" }.first { access($0, X_OK) == 0 }
    }

    // MARK: While it runs

    /// Waits for its end, and for what its proxy and its door tell meanwhile.
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
        // What the command sends to its whole group it has got itself.
        guard let sender = arrival.sender else {
            if Self.timers.contains(arrival.signal) { kill(process, arrival.signal) }
            return
        }
        if sender != process { kill(process, arrival.signal) }
    }

    /// Takes note of all children that have changed: as the first process of a container this one has others' too.
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

    /// Lets a signal do what it does to a process that has said nothing about it.
    private static func takeDefault(of signal: CInt) {
        var (action, before) = (sigaction(), sigaction())
        var (set, mask) = (sigset_t(), sigset_t())
        sigemptyset(&set)
        sigaddset(&set, signal)
        sigaction(signal, &action, &before)
        // Still blocked, it is one with the terminal's, which may be pending: else the process would stop twice.
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
            // The command has left its core.
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
