import Synchronization

/// The bytes of bodies that a process keeps at a time (`limits.bodies`), shared by its threads. A passing body takes
/// at most a slab; a kept one has a ``BodyReservation``, which can't grow beyond the budget.
package final class BodyBudget: Sendable {
    package enum Purpose: String, CaseIterable, Sendable {
        case request
        /// A rule reads the response before, or while, the client gets it.
        case response
        case shared
        case replay
        /// A response that will be stored.
        case cache
    }

    private struct Refusals {
        var counts: [Purpose: Int] = [:]
        /// Since ``takeRefusals()``.
        var fresh = 0
        var told: (@Sendable () -> Void)?
    }

    package static let usualLimit = 256 << 20

    private let taken = Atomic<Int>(0)
    private let most: Atomic<Int>
    private let refusals = Mutex(Refusals())

    package init(limit: Int = BodyBudget.usualLimit) { most = Atomic(limit) }

    /// Bytes. Below the current use, nothing more is kept until enough was released.
    package var limit: Int {
        get { most.load(ordering: .relaxed) }
        set { most.store(newValue, ordering: .relaxed) }
    }

    package var inUse: Int { taken.load(ordering: .relaxed) }

    fileprivate func take(_ count: Int, for purpose: Purpose) -> Bool {
        guard count > 0 else { return true }
        let limit = limit
        var now = inUse
        while true {
            let (sum, overflows) = now.addingReportingOverflow(count)
            guard !overflows, sum <= limit else {
                refuse(purpose)
                return false
            }
            let (isTaken, others) = taken.weakCompareExchange(expected: now, desired: sum, ordering: .relaxed)
            if isTaken { return true }
            now = others
        }
    }

    fileprivate func giveBack(_ count: Int) { taken.subtract(count, ordering: .relaxed) }

    // MARK: Refusals

    /// Bodies not kept, or not to their end, since the start.
    package var refused: [Purpose: Int] { refusals.withLock { $0.counts } }

    private func refuse(_ purpose: Purpose) {
        let told = refusals.withLock { refusals in
            refusals.counts[purpose, default: 0] += 1
            refusals.fresh += 1
            return refusals.fresh == 1 ? refusals.told : nil
        }
        told?()
    }

    /// - Parameter told: called on any thread when a body isn't kept, and not again before ``takeRefusals()``.
    package func notify(_ told: @escaping @Sendable () -> Void) { refusals.withLock { $0.told = told } }

    package func takeRefusals() -> Int {
        refusals.withLock { refusals in
            defer { refusals.fresh = 0 }
            return refusals.fresh
        }
    }
}

/// One body's part of a ``BodyBudget``, changed by one holder. Its deinit returns the bytes.
package final class BodyReservation: Sendable {
    private static let (first, step) = (4 << 10, 64 << 10)

    private let budget: BodyBudget
    private let purpose: BodyBudget.Purpose
    private let taken = Atomic<Int>(0)

    /// For a growing body; takes nothing yet.
    package init(of budget: BodyBudget, for purpose: BodyBudget.Purpose) {
        self.budget = budget
        self.purpose = purpose
    }

    /// For a body of a known length; nil if the budget is spent.
    package convenience init?(of budget: BodyBudget, for purpose: BodyBudget.Purpose, bytes: Int) {
        self.init(of: budget, for: purpose)
        guard budget.take(bytes, for: purpose) else { return nil }
        taken.store(bytes, ordering: .relaxed)
    }

    deinit { budget.giveBack(bytes) }

    package var bytes: Int { taken.load(ordering: .relaxed) }

    /// Makes room: doubled from 4 KiB to 64 KiB, then in steps. False if the budget is spent.
    package func grow(to count: Int) -> Bool {
        let missing = Self.rounded(count) - bytes
        guard missing > 0 else { return true }
        guard budget.take(missing, for: purpose) else { return false }
        taken.add(missing, ordering: .relaxed)
        return true
    }

    /// Changes the reservation for another body, perhaps shorter.
    package func resize(to count: Int) -> Bool {
        let surplus = bytes - Self.rounded(count)
        guard surplus > 0 else { return grow(to: count) }
        taken.subtract(surplus, ordering: .relaxed)
        budget.giveBack(surplus)
        return true
    }

    package func absorb(_ other: BodyReservation) {
        taken.add(other.taken.exchange(0, ordering: .relaxed), ordering: .relaxed)
    }

    private static func rounded(_ count: Int) -> Int {
        guard count > 0 else { return 0 }
        guard count > step else { return max(first, 1 << (Int.bitWidth - (count - 1).leadingZeroBitCount)) }
        let (sum, overflows) = count.addingReportingOverflow(step - 1)
        return overflows ? count : sum / step * step
    }
}
