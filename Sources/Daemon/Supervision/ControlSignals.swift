import Glibc
import PinproxyEventLoop

/// The daemon's signals, on their own thread: no handler interrupts anything.
struct ControlSignals {
    private static let taken = [SIGHUP, SIGTERM, SIGINT]
    private let set: sigset_t

    /// Blocks them in later threads. SIGPIPE is ignored: failed writes return errors.
    static func block() -> ControlSignals {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in taken { sigaddset(&set, signal) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        signal(SIGPIPE, SIG_IGN)
        return ControlSignals(set: set)
    }

    /// - Parameter received: called for each signal, on its own thread.
    func watch(_ received: @escaping @Sendable (CInt) -> Void) throws(SystemError) {
        let set = set
        try SystemThread.start("signals", stackSize: 128 << 10) {
            var set = set
            var signal: CInt = 0
            while sigwait(&set, &signal) == 0 { received(signal) }
        }
    }
}
