internal import Dispatch
import PinproxyEventLoop
import Synchronization

/// A thread that follows one target, with its own resolver.
enum MonitorThread {
    private final class Started: Sendable {
        let result = Mutex<Result<EventLoop.Handle, any Error>?>(nil)
        let isKnown = DispatchSemaphore(value: 0)

        func report(_ outcome: Result<EventLoop.Handle, any Error>) {
            result.withLock { $0 = outcome }
            isKnown.signal()
        }
    }

    /// Returns when the monitor follows the target. The thread ends with its loop, and calls `tell`.
    static func start(
        _ target: ReachabilityTarget, tell: @escaping @Sendable (ReachabilityChange) -> Void
    ) throws -> EventLoop.Handle {
        let started = Started()
        try SystemThread.start("reachability", stackSize: 512 << 10) {
            do {
                let loop = try EventLoop()
                let monitor = try follow(target, on: loop, tell: tell)
                started.report(.success(loop.handle))
                loop.run()
                monitor.stop()
            } catch {
                started.report(.failure(error))
            }
        }
        started.isKnown.wait()
        // Reported before it was signalled.
        return try started.result.withLock { try $0!.get() }
    }

    private static func follow(
        _ target: ReachabilityTarget, on loop: EventLoop, tell: @escaping @Sendable (ReachabilityChange) -> Void
    ) throws -> NetworkMonitor {
        let resolver = try Resolver(loop: loop, cache: ResolverCache())
        let lookUp = NetworkMonitor.lookUp(by: resolver)
        var listener = NetworkMonitor.Listener()
        // Not at once: the starter waits until it has begun, and may hold a lock that `tell` takes.
        listener.changed = { change in loop.afterThisTurn { tell(change) } }
        let monitor = NetworkMonitor(loop: loop, targets: [target], listener: listener) { name, completion in
            // Another network may have other name servers; if they can't be read, the old ones are kept.
            try? resolver.reload()
            lookUp(name, completion)
        }
        try monitor.start()
        return monitor
    }
}
