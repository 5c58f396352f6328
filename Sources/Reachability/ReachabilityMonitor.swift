import PinproxyEventLoop
import Synchronization

/// Watches whether a target can be reached, for programs that use this library.
///
/// ```swift
/// let monitor = ReachabilityMonitor(.host("api.example.com"))
/// try monitor.start { change in print(change.from, "→", change.to, change.to.reason) }
/// …
/// for await change in monitor.changes { … }     // the same, for async code
/// monitor.status                                // and at any moment
/// ```
///
/// The status is unknown until monitoring has begun, and again after a stop. The monitor reports a first status, then
/// each change once, in order, as soon as it has lasted 200 ms. It may be restarted. While it runs, it has a thread.
public final class ReachabilityMonitor: Sendable {
    /// The watched target.
    public let target: ReachabilityTarget
    private let shared = Mutex(Shared())

    private struct Run {
        let number: Int
        /// Nil while the thread starts.
        var handle: EventLoop.Handle?
    }

    private struct Shared {
        var status = ReachabilityStatus.unknown
        /// Nil: it is stopped.
        var run: Run?
        var runs = 0
        var streams: [Int: AsyncStream<ReachabilityChange>.Continuation] = [:]
        var streamsMade = 0
    }

    /// - Parameter target: by default the machine's route to the internet. Nothing is watched before ``start(_:)``.
    public init(_ target: ReachabilityTarget = .any) {
        self.target = target
    }

    deinit {
        shared.withLock { shared in
            shared.run?.handle?.post { $0.stop() }
            for stream in shared.streams.values { stream.finish() }
        }
    }

    /// The current status.
    public var status: ReachabilityStatus { shared.withLock { $0.status } }

    /// Later changes, for one task; a slow task gets the last 64. Ends with the monitor, not at a stop.
    public var changes: AsyncStream<ReachabilityChange> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ReachabilityChange.self, bufferingPolicy: .bufferingNewest(64))
        let number = shared.withLock { shared in
            shared.streamsMade += 1
            shared.streams[shared.streamsMade] = continuation
            return shared.streamsMade
        }
        continuation.onTermination = { [weak self] _ in
            self?.shared.withLock { $0.streams[number] = nil }
        }
        return stream
    }

    /// Starts monitoring. Harmless if it has begun.
    /// - Parameter changed: called for the first status and for each change, on the monitor's thread, one at a time. It
    ///   must not wait. It may stop and start the monitor.
    /// - Throws: the failed system call's error, e.g. if netlink sockets are forbidden. The monitor is stopped then.
    public func start(_ changed: @escaping @Sendable (ReachabilityChange) -> Void = { _ in }) throws {
        let run: Int? = shared.withLock { shared in
            guard shared.run == nil else { return nil }
            shared.runs += 1
            shared.run = Run(number: shared.runs)
            return shared.runs
        }
        guard let run else { return }
        do {
            let handle = try MonitorThread.start(target) { [weak self] change in
                self?.tell(change, of: run, changed)
            }
            // Stopped meanwhile: nothing else ends the thread then.
            let isWanted = shared.withLock { shared in
                guard shared.run?.number == run else { return false }
                shared.run?.handle = handle
                return true
            }
            if !isWanted { handle.post { $0.stop() } }
        } catch {
            shared.withLock { shared in
                if shared.run?.number == run { shared.run = nil }
            }
            throw error
        }
    }

    /// Ends reports, except one in flight on the monitor's thread. The status becomes unknown. May be repeated.
    public func stop() {
        let run = shared.withLock { shared in
            defer { shared.run = nil }
            shared.status = .unknown
            return shared.run
        }
        run?.handle?.post { $0.stop() }
    }

    private func tell(
        _ change: ReachabilityChange, of run: Int, _ changed: @Sendable (ReachabilityChange) -> Void
    ) {
        let streams = shared.withLock { shared -> [AsyncStream<ReachabilityChange>.Continuation]? in
            guard shared.run?.number == run else { return nil }
            shared.status = change.to
            return Array(shared.streams.values)
        }
        guard let streams else { return }
        for stream in streams { stream.yield(change) }
        changed(change)
    }
}
