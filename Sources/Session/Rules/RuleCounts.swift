import Synchronization

/// Uses of some rules since the last ``take()``, counted by all workers without a lock.
package final class RuleCounts: Sendable {
    private let exchanges = Atomic<Int>(0)
    private let responses = Atomic<Int>(0)

    package init() {}

    package func countExchange() { exchanges.wrappingAdd(1, ordering: .relaxed) }

    package func countResponse() { responses.wrappingAdd(1, ordering: .relaxed) }

    /// Returns the counts, and resets them.
    package func take() -> (exchanges: Int, responses: Int) {
        // Most are unused: reading first leaves the cache line shared.
        func take(_ count: borrowing Atomic<Int>) -> Int {
            count.load(ordering: .relaxed) == 0 ? 0 : count.exchange(0, ordering: .relaxed)
        }
        return (take(exchanges), take(responses))
    }
}
