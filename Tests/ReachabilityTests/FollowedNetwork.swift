import Foundation
import PinproxyEventLoop
import Synchronization
import Testing

@testable import PinproxyReachability

/// Runs a monitor on its own loop in a network namespace, and collects what it reports.
final class FollowedNetwork: Sendable {
    /// Replaces name servers. An unlisted name doesn't exist.
    final class Names: Sendable {
        let answers: Mutex<[String: NetworkMonitor.LookUpResult]>
        let asked = Mutex(0)

        init(_ addresses: [String: [String]] = [:]) {
            answers = Mutex(addresses.mapValues { .found($0.compactMap { IPAddress($0) }) })
        }

        func answer(for name: String) -> NetworkMonitor.LookUpResult {
            asked.withLock { $0 += 1 }
            return answers.withLock { $0[name] ?? .noSuchHost("\(name): no such host") }
        }
    }

    private final class Told: Sendable {
        let changes = Mutex<[ReachabilityChange]>([])
        let someCame = DispatchSemaphore(value: 0)
        let started = Mutex<Result<(EventLoop.Handle, LoopBound<NetworkMonitor>), any Error>?>(nil)
        let isStarted = DispatchSemaphore(value: 0)
    }

    private let told = Told()
    private let handle: EventLoop.Handle
    private let monitor: LoopBound<NetworkMonitor>

    /// Starts the monitor. The first status counts as a change.
    init(
        _ targets: [ReachabilityTarget] = [.any], in namespace: NetworkNamespace, sysfs: String = "/nonexistent",
        names: Names = Names()
    ) throws {
        let told = told
        (handle, monitor) = try namespace.perform {
            let thread = Thread {
                do {
                    let loop = try EventLoop()
                    var listener = NetworkMonitor.Listener()
                    listener.changed = { change in
                        told.changes.withLock { $0.append(change) }
                        told.someCame.signal()
                    }
                    let monitor = NetworkMonitor(loop: loop, targets: targets, sysfs: sysfs, listener: listener) {
                        $1(names.answer(for: $0))
                    }
                    try monitor.start()
                    told.started.withLock { $0 = .success((loop.handle, LoopBound(monitor, on: loop))) }
                    told.isStarted.signal()
                    loop.run()
                    monitor.stop()
                } catch {
                    told.started.withLock { $0 = .failure(error) }
                    told.isStarted.signal()
                }
            }
            thread.start()
            told.isStarted.wait()
            return try told.started.withLock { try $0!.get() }
        }
    }

    deinit {
        handle.post { $0.stop() }
    }

    /// Does something with the monitor on its loop.
    func perform(_ work: @escaping @Sendable (NetworkMonitor) -> Void) {
        let monitor = monitor
        handle.post { work(monitor.value(on: $0)) }
    }

    /// Waits for the oldest change that wasn't taken yet.
    func next(_ location: SourceLocation = #_sourceLocation) throws -> ReachabilityChange {
        try #require(told.someCame.wait(timeout: .now() + 30) == .success, "no change came", sourceLocation: location)
        return told.changes.withLock { $0.removeFirst() }
    }

    /// Waits until a change satisfies `isLast`, and returns all changes up to that one.
    func changes(
        until isLast: (ReachabilityStatus) -> Bool, _ location: SourceLocation = #_sourceLocation
    ) throws -> [ReachabilityChange] {
        var changes = [try next(location)]
        while let last = changes.last, !isLast(last.to) { changes.append(try next(location)) }
        return changes
    }

    /// Changes that were reported and not taken.
    var left: [ReachabilityChange] { told.changes.withLock { $0 } }
}

extension NetworkNamespace {
    /// Adds the uplink `up0`, with the given number: a pair of interfaces, both up. Returns once it has a carrier,
    /// which takes the kernel a moment.
    func addUplink(_ number: Int = 0) throws {
        try ip(batch: [
            "link add up\(number) type veth peer name far\(number)", "link set far\(number) up",
            "link set up\(number) up",
        ])
        let carries = try perform {
            let kernel = try KernelNetwork(marksReader: LinkMarksReader(folder: "/nonexistent"))
            for _ in 0..<10_000 {
                let links = try kernel.state(routesTo: []).links.values
                if links.contains(where: { $0.name == "up\(number)" && $0.isUsable }) { return true }
                usleep(1000)
            }
            return false
        }
        guard carries else { throw Failure(description: "up\(number) doesn't carry") }
    }
}
