import EventLoop
import Glibc

/// The signals that steer the daemon, taken by their own thread: no handler interrupts anything.
struct ControlSignals {
    private static let taken = [SIGHUP, SIGTERM, SIGINT]
    private let set: sigset_t

    /// Keeps them from every thread that is started from now on. SIGPIPE is ignored: a failed write tells by itself.
    static func block() -> ControlSignals {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in taken { sigaddset(&set, signal) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        signal(SIGPIPE, SIG_IGN)
        return ControlSignals(set: set)
    }

    /// - Parameter received: called for each signal, on a thread of its own.
    func watch(_ received: @escaping @Sendable (CInt) -> Void) throws(SystemError) {
        let set = set
        try SystemThread.start("signals", stackSize: 128 << 10) {
            var set = set
            var signal: CInt = 0
            while sigwait(&set, &signal) == 0 { received(signal) }
        }
    }
}
