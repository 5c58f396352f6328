internal import Glibc
internal import PinproxyEventLoop
internal import PinproxyIsolation

/// Runs another program to its end or to a time limit, with everything that it starts in its process group.
struct BoundedProcess {
    /// The most bytes kept of its output, the last ones.
    private static let longestOutput = 64 << 10
    /// The longest delay before an interrupt is noticed.
    private static let stepMilliseconds: CInt = 100

    let arguments: [String]
    let environment: [String: String]
    /// Any of them ends it.
    let interrupts: Interrupts
    /// Its private surroundings. Without mounts it runs anyway; without a network ``SurroundingsRefused`` is thrown.
    var surroundings = CommandSurroundings()
    /// Called with the sockets that listen in its network. It takes them over.
    var entered: ([CInt]) throws -> Void = { _ in }

    struct Interrupted: Error {
        let signal: CInt
    }

    struct Ending {
        /// Nil: it was killed at the time limit.
        let status: CInt?
        let output: String

        var succeeded: Bool { status == 0 }
    }

    /// - Parameter session: handles the proxy's news and questions meanwhile.
    /// - Throws: ``Interrupted``, or that it can't be started.
    func run(for limit: Duration, as session: ProxySession? = nil) throws -> Ending {
        let children = try Self.endsOfChildren()
        let ends = try ChildProcess.makePipe()
        defer { close(ends[0]) }
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        let started = Result { try start(writingTo: ends[1]) }
        close(ends[1])
        let (process, sockets) = try started.get()
        do {
            if !sockets.isEmpty { try entered(sockets) }
        } catch {
            kill(-process, SIGKILL)
            while waitpid(process, nil, 0) < 0, errno == EINTR {}
            throw error
        }
        return try follow(process, ends[0], children, session, until: ContinuousClock.now + limit)
    }

    /// Readable when a child has ended. Blocks the signal.
    private static func endsOfChildren() throws -> SignalDescriptor {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGCHLD)
        pthread_sigmask(SIG_BLOCK, &set, nil)
        return try SignalDescriptor([SIGCHLD])
    }

    private func follow(
        _ process: pid_t, _ descriptor: CInt, _ children: borrowing SignalDescriptor, _ session: ProxySession?,
        until deadline: ContinuousClock.Instant
    ) throws -> Ending {
        var output: [UInt8] = []
        var isWriting = true
        var status: CInt = 0
        var hasEnded = false
        var signal: CInt?
        while !hasEnded, signal == nil, ContinuousClock.now < deadline {
            // The program may still run after it has closed its output.
            var wanted = [isWriting ? descriptor : -1, session?.descriptor ?? -1, children.raw].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            poll(&wanted, nfds_t(wanted.count), Self.stepMilliseconds)
            while children.next() != nil {}
            if wanted[1].revents != 0 { session?.receive { _ in } }
            isWriting = isWriting && Self.read(descriptor, into: &output)
            hasEnded = waitpid(process, &status, WNOHANG) == process
            signal = interrupts.arrived()
        }
        // Also kills its background processes.
        kill(-process, SIGKILL)
        while !hasEnded, waitpid(process, &status, 0) < 0, errno == EINTR {}
        if let signal { throw Interrupted(signal: signal) }
        _ = Self.read(descriptor, into: &output)
        return Ending(status: hasEnded ? status : nil, output: String(decoding: output, as: UTF8.self))
    }

    private func start(writingTo output: CInt) throws -> (process: pid_t, sockets: [CInt]) {
        // If the signal is ignored (which is inherited), children vanish with their status.
        Glibc.signal(SIGCHLD, SIG_DFL)
        guard !surroundings.isEmpty else { return (try startPlainly(writingTo: output), []) }
        let (near, far) = try DescriptorMessage.pair()
        defer { close(near) }
        let process: pid_t
        do {
            defer { close(far) }
            process = try ExecFork.start(arguments, in: surroundings, tellingOver: far, mask: .empty) {
                becomeProgram(writingTo: output)
            }
        }
        switch try ExecFork.outcome(of: process, in: surroundings, over: near) {
        case .entered(let entered): return (process, entered.sockets)
        case .refused(let cause):
            while waitpid(process, nil, 0) < 0, errno == EINTR {}
            if surroundings.network != nil { throw SurroundingsRefused(cause: cause) }
            return (try startPlainly(writingTo: output), [])
        case .notRun(let problem):
            while waitpid(process, nil, 0) < 0, errno == EINTR {}
            throw SystemError(code: problem, call: "execvp")
        }
    }

    /// Runs in the child.
    private func becomeProgram(writingTo output: CInt) {
        setpgid(0, 0)
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        dup2(nothing, STDIN_FILENO)
        for descriptor in [STDOUT_FILENO, STDERR_FILENO] { dup2(output, descriptor) }
        clearenv()
        for (name, value) in environment { setenv(name, value, 1) }
    }

    private func startPlainly(writingTo output: CInt) throws(SystemError) -> pid_t {
        var program = ProgramStart(arguments[0], arguments, environment: environment.map { "\($0.key)=\($0.value)" })
        program.descriptors = [
            (STDIN_FILENO, .nothing), (STDOUT_FILENO, .descriptor(output)), (STDERR_FILENO, .descriptor(output)),
        ]
        program.group = .own
        // Signals blocked in this process aren't blocked in the program.
        program.blockedSignals = .empty
        return try program.start()
    }

    /// Reads what is available; false at the end.
    private static func read(_ descriptor: CInt, into output: inout [UInt8]) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 8192)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            guard count > 0 else { return count < 0 }
            output += chunk[..<count]
            if output.count > longestOutput { output.removeFirst(output.count - longestOutput) }
        }
    }
}
