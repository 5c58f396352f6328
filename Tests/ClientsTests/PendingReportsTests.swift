import PinproxyEventLoop
import Testing

@testable import PinproxyClients

/// How many refusals of a worker wait for their clients to be found.
@Suite struct PendingReportsTests {
    private func time(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: UInt64(seconds * 1e9)) }

    /// A user who is refused all the time leaves searches to others.
    @Test func aUserHasAShareOfTheWorkers() {
        var reports = PendingReports()
        func searches(of user: UInt32, at seconds: Double) -> Int {
            (0..<100).count { _ in reports.maySearch(for: user, at: time(seconds)) }
        }
        let share = PendingReports.searchesPerSecond / 4
        #expect(searches(of: 1, at: 5) == share)
        #expect(searches(of: 1, at: 5.5) == 0)
        for user: UInt32 in 2...4 { #expect(searches(of: user, at: 5.9) == share) }
        #expect(searches(of: 5, at: 5.9) == 0, "the worker's are spent")
        #expect(searches(of: 5, at: 6) == share)
        #expect(searches(of: 1, at: 6) == share)
    }
}
