internal import Glibc

/// Ctrl-C and SIGTERM, as events that don't end the process.
struct Interrupts {
    private let set: sigset_t

    /// Blocks the signals: they wait until they are read.
    init() {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        pthread_sigmask(SIG_BLOCK, &set, nil)
        self.set = set
    }

    /// Takes the pending one; nil: none.
    func arrived() -> CInt? {
        var set = set
        var wait = timespec()
        let signal = sigtimedwait(&set, nil, &wait)
        return signal > 0 ? signal : nil
    }

    /// True if one came before that many seconds were over.
    func come(within seconds: Int) -> Bool {
        var set = set
        var wait = timespec()
        wait.tv_sec = max(0, seconds)
        return sigtimedwait(&set, nil, &wait) > 0
    }
}
