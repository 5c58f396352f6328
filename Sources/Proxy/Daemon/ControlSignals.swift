import EventLoop
import Foundation

/// The signals that steer the daemon, taken by a thread of their own, so that no handler interrupts
/// anything.
struct ControlSignals {
    private static let taken = [SIGHUP, SIGTERM, SIGINT]
    private let set: sigset_t

    /// Keeps the signals from every thread that is started from now on; and SIGPIPE, of which a
    /// failed write tells by itself, from ending the process.
    static func block() -> ControlSignals {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in taken { sigaddset(&set, signal) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        signal(SIGPIPE, SIG_IGN)
        return ControlSignals(set: set)
    }

    func watch(reporting daemon: LoopBound<ProxyDaemon>, on handle: EventLoop.Handle) {
        let set = set
        let thread = Thread {
            var set = set
            var received: CInt = 0
            while sigwait(&set, &received) == 0 {
                let signal = received
                handle.post { loop in
                    let daemon = daemon.value(on: loop)
                    switch signal {
                    case SIGHUP: _ = daemon.reload()
                    default: daemon.stop()
                    }
                }
            }
        }
        thread.name = "signals"
        thread.stackSize = 128 << 10
        thread.start()
    }
}
