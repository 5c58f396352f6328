import PinproxyEventLoop

/// For WatchdogSec= (systemd.service(5)): every thread's loop turns.
final class Heartbeat {
    /// Runs the closure on the thread that is asked.
    typealias Ask = (_ answer: @escaping @Sendable () -> Void) -> Void

    private let loop: EventLoop
    private let intervalNanoseconds: UInt64
    private let threads: [Ask]
    private let alive: () -> Void
    private var awaited = 0
    private lazy var deadline = Deadline(loop: loop, owner: self) { $0.beat() }

    init(loop: EventLoop, intervalNanoseconds: UInt64, threads: [Ask], alive: @escaping () -> Void) {
        self.loop = loop
        self.intervalNanoseconds = intervalNanoseconds
        self.threads = threads
        self.alive = alive
    }

    /// Called once, on the loop's thread.
    func start() { beat() }

    private func beat() {
        deadline.set(afterNanoseconds: intervalNanoseconds)
        // A silent thread is not asked again.
        guard awaited == 0 else { return }
        awaited = threads.count
        let bound = LoopBound(self, on: loop)
        for ask in threads { ask { bound.post { $0.answered() } } }
    }

    private func answered() {
        awaited -= 1
        if awaited == 0 { alive() }
    }
}
