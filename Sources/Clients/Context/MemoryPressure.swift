import Synchronization

/// Memory of the process's control group.
package struct MemoryUse: Sendable, Equatable {
    /// Without inactive page cache, which the kernel reclaims first.
    package var used: Int
    package var limit: Int

    package init(used: Int, limit: Int) {
        self.used = used
        self.limit = limit
    }

    package var share: Int { limit > 0 ? min(used / max(limit / 1000, 1), 10_000) : 10_000 }
}

/// Measures how short memory is, for all threads. New connections claim memory until the first measurement after them.
package final class MemoryPressure: Sendable {
    /// Bytes of a CONNECT until the client's handshake is done: two TLS connections. A request takes as much.
    private static let claimed = 64 << 10
    /// From this share on (in thousandths) requests claim memory too.
    private static let tight = 700

    package enum Level: Int, Comparable, CaseIterable {
        case none
        /// New clients wait, and idle connections are closed.
        case short
        /// New requests are refused too.
        case spent

        package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }

        /// In thousandths of the limit.
        fileprivate var begins: Int {
            switch self {
            case .none: 0
            case .short: 850
            case .spent: 930
            }
        }

        /// Hysteresis.
        private static let margin = 30

        func next(at share: Int) -> Level {
            Level.allCases.last { share >= $0.begins - ($0 <= self ? Self.margin : 0) } ?? .none
        }
    }

    private let value = Atomic(0)
    private let isTight = Atomic(false)
    private let bytesUsed = Atomic(0)
    private let bytesLimit = Atomic(0)
    /// Claimed since the last measurement.
    private let expected = Atomic(0)
    /// The part that the next measurement includes.
    private let settled = Atomic(0)

    package init() {}

    package var level: Level { Level(rawValue: value.load(ordering: .relaxed)) ?? .none }

    /// The last measurement; nil: no limit.
    package var use: MemoryUse? {
        let limit = bytesLimit.load(ordering: .relaxed)
        return limit > 0 ? MemoryUse(used: bytesUsed.load(ordering: .relaxed), limit: limit) : nil
    }

    /// - Parameter use: called once for the present use.
    /// - Returns: the level, and whether it has changed.
    package func measure(_ use: () -> MemoryUse?) -> (level: Level, isAnother: Bool) {
        let seen = settled.exchange(0, ordering: .acquiring)
        let use = use()
        let expected = expected.subtract(seen, ordering: .relaxed).newValue
        bytesUsed.store(use?.used ?? 0, ordering: .relaxed)
        bytesLimit.store(use?.limit ?? 0, ordering: .relaxed)
        let share = use.map { MemoryUse(used: $0.used + expected, limit: $0.limit).share } ?? 0
        isTight.store(share >= Self.tight, ordering: .relaxed)
        let before = level
        let level = before.next(at: share)
        value.store(level.rawValue, ordering: .relaxed)
        return (level, level != before)
    }

    // MARK: Claims

    /// Whether there is memory for one more request.
    func admitsRequest() -> Bool {
        guard isTight.load(ordering: .relaxed) else { return true }
        guard admitsConnection else { return false }
        expect()
        settle()
        return true
    }

    /// Whether there is memory for one more connection to an origin, with its client's.
    var admitsConnection: Bool {
        guard let use else { return true }
        let total = use.used + expected.load(ordering: .relaxed) + Self.claimed
        return level < .spent && MemoryUse(used: total, limit: use.limit).share < Level.spent.begins
    }

    fileprivate func expect() { expected.add(Self.claimed, ordering: .relaxed) }
    fileprivate func settle() { settled.add(Self.claimed, ordering: .releasing) }
}

/// Memory that a new connection is about to take.
struct MemoryClaim: ~Copyable {
    private let pressure: MemoryPressure

    init(on pressure: MemoryPressure) {
        self.pressure = pressure
        pressure.expect()
    }

    deinit { pressure.settle() }
}
