import PinproxyReachability
import Synchronization
import Testing

/// The library's API, as a program uses it.
@Suite(.enabled(if: NetworkNamespace.isAvailable, NetworkNamespace.why))
struct ReachabilityMonitorTests {
    @Test(.timeLimit(.minutes(5))) func tellsByClosureSequenceAndValue() async throws {
        let namespace = try NetworkNamespace()
        let monitor = ReachabilityMonitor()
        #expect(monitor.status == .unknown)
        var changes = monitor.changes.makeAsyncIterator()
        let told = Told()
        try namespace.perform { try monitor.start { change in told.statuses.withLock { $0.append(change.to) } } }
        #expect(await changes.next()?.to == .notReachable(.noLink))
        try namespace.addUplink()
        try namespace.ip(batch: ["address add 192.0.2.7/24 dev up0", "route add default via 192.0.2.1"])
        let change = try #require(await changes.next())
        // The reason changes as the uplink appears, which alone isn't reported.
        #expect({ if case .notReachable = change.from { true } else { false } }(), "\(change.from)")
        #expect(change.to.path?.link.kind == .wired)
        #expect(monitor.status == change.to)
        monitor.stop()
        #expect(monitor.status == .unknown)
        #expect(told.statuses.withLock { $0.first } == .notReachable(.noLink))
    }

    private final class Told: Sendable {
        let statuses = Mutex<[ReachabilityStatus]>([])
    }

    @Test(.timeLimit(.minutes(5))) func startsAndStopsAsOftenAsOneLikes() async throws {
        let namespace = try NetworkNamespace()
        let monitor = ReachabilityMonitor(.host("127.0.0.1"))
        var changes = monitor.changes.makeAsyncIterator()
        for _ in 0..<50 {
            try namespace.perform {
                try monitor.start()
                try monitor.start()
            }
            let change = try #require(await changes.next())
            #expect(change.from == .unknown)
            #expect(change.to.path?.link.kind == .loopback)
            monitor.stop()
            monitor.stop()
        }
    }

    @Test(.timeLimit(.minutes(5))) func aSequenceEndsWithItsMonitor() async throws {
        var monitor: ReachabilityMonitor? = ReachabilityMonitor()
        let changes = try #require(monitor).changes
        monitor = nil
        var count = 0
        for await _ in changes { count += 1 }
        #expect(count == 0)
    }
}
