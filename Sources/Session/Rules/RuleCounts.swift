import Synchronization

/// How often some rules were used since that was last asked: by all workers, without a lock.
package final class RuleCounts: Sendable {
    private let exchanges = Atomic<Int>(0)
    private let responses = Atomic<Int>(0)

    package init() {}

    package func countExchange() { exchanges.wrappingAdd(1, ordering: .relaxed) }

    package func countResponse() { responses.wrappingAdd(1, ordering: .relaxed) }

    /// Hands out the counts, and begins at 0 again.
    package func take() -> (exchanges: Int, responses: Int) {
        // Most rules are at rest: reading leaves the memory to the workers.
        func take(_ count: borrowing Atomic<Int>) -> Int {
            count.load(ordering: .relaxed) == 0 ? 0 : count.exchange(0, ordering: .relaxed)
        }
        return (take(exchanges), take(responses))
    }
}
