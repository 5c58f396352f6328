internal import Glibc
internal import PinproxyDaemon
internal import PinproxyEventLoop

/// The main process of a service that hands over: it runs the proxy as its child (`pinproxy run --handover`).
///
/// A service manager starts the next proxy as soon as the main process has ended. Told to stop, this one has the proxy
/// hand over, which takes milliseconds, and ends. The proxy finishes what is in flight without it.
struct Supervisor {
    /// The time limit to hand over, or to end after a signal that asks for a core file.
    private static let patienceSeconds = 10
    private static let awaited = [SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGABRT, SIGQUIT]

    private let proxy: pid_t
    private let socket: CInt
    private let signals: sigset_t

    /// Forks a child that becomes the proxy. This function returns in the child; the parent supervises it until it
    /// ends.
    ///
    /// A fork, and not another start of the program: clients would wait while that is loaded and linked. What both
    /// processes have in common is in memory once. To be called while there is one thread.
    /// - Returns: in the proxy, its end of the socket to the main process.
    static func forkProxy() throws -> CInt {
        var signals = sigset_t()
        var before = sigset_t()
        sigemptyset(&signals)
        for signal in awaited { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, &before)
        let (near, far) = try DescriptorMessage.pair()
        let proxy = fork()
        guard proxy >= 0 else {
            let error = SystemError(code: errno, call: "fork")
            throw CommandFailure("the proxy couldn't be started: \(Run.message(of: error))")
        }
        guard proxy > 0 else {
            close(near)
            pthread_sigmask(SIG_SETMASK, &before, nil)
            // The proxy feeds the watchdog, and has another process number.
            unsetenv("WATCHDOG_PID")
            ServiceNotifier.adoptSockets()
            return far
        }
        close(far)
        ServiceNotifier.closeSockets()
        FreeMemory { $0() }.giveBackAfterStart()
        exit(Supervisor(proxy: proxy, socket: near, signals: signals).run())
    }

    /// - Returns: the exit status: the proxy's, or 0 if it has handed over.
    private func run() -> CInt {
        var signals = signals
        while true {
            switch sigwaitinfo(&signals, nil) {
            case SIGCHLD: if let status = exitStatus() { return status }
            case SIGHUP: kill(proxy, SIGHUP)
            case SIGINT, SIGTERM: return handOver()
            case let signal where signal > 0:
                kill(proxy, signal)
                // A stopped process handles no other signal.
                kill(proxy, SIGCONT)
                return end()
            default: continue
            }
        }
    }

    private func handOver() -> CInt {
        var patience = timeval()
        patience.tv_sec = Self.patienceSeconds
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        do {
            try DescriptorMessage.send(SupervisorWord.handOver.bytes, over: socket)
            // Nothing else is ever said there. Its end is the proxy's.
            if try DescriptorMessage.receive(from: socket) != nil { return 0 }
        } catch {}
        return end()
    }

    /// Waits for the proxy's end, and sees to it.
    private func end() -> CInt {
        var child = sigset_t()
        sigemptyset(&child)
        sigaddset(&child, SIGCHLD)
        var patience = timespec()
        patience.tv_sec = Self.patienceSeconds
        if let status = exitStatus() { return status }
        _ = sigtimedwait(&child, nil, &patience)
        if let status = exitStatus() { return status }
        kill(proxy, SIGKILL)
        return exitStatus(waiting: true) ?? 1
    }

    /// The proxy's exit status, as a shell has it; nil: it runs.
    ///
    /// Leaves the process unreaped: the journal attributes its last lines while the process table has it.
    private func exitStatus(waiting: Bool = false) -> CInt? {
        var ending = siginfo_t()
        while waitid(P_PID, id_t(proxy), &ending, WEXITED | WNOWAIT | (waiting ? 0 : WNOHANG)) != 0 {
            guard errno == EINTR else { return 1 }
        }
        let child = ending._sifields._sigchld
        guard child.si_pid == proxy else { return nil }
        return Int(ending.si_code) == Int(CLD_EXITED) ? child.si_status : 128 + child.si_status
    }
}

extension SystemError {
    /// No process can be made: the user, the control group or the machine has as many as it may.
    var isLackOfProcesses: Bool { code == EAGAIN && call == "fork" }
}
