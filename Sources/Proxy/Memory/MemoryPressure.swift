import Synchronization

/// How short the memory is, as every thread may ask.
final class MemoryPressure: Sendable {
    enum Level: Int, Comparable, CaseIterable {
        case none
        /// New clients wait, and idle connections are closed.
        case short
        /// New requests are refused besides.
        case spent

        static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }

        /// In thousandths of the limit, where it begins.
        private var begins: Int {
            switch self {
            case .none: 0
            case .short: 850
            case .spent: 930
            }
        }

        /// How far below that it ends, so that it doesn't come and go.
        private static let margin = 30

        /// The level that follows this one.
        func next(at share: Int) -> Level {
            Level.allCases.last { share >= $0.begins - ($0 <= self ? Self.margin : 0) } ?? .none
        }
    }

    private let value = Atomic(0)
    private let bytesUsed = Atomic(0)
    private let bytesLimit = Atomic(0)

    var level: Level { Level(rawValue: value.load(ordering: .relaxed)) ?? .none }
    var refusesRequests: Bool { value.load(ordering: .relaxed) == Level.spent.rawValue }

    /// As last measured; nil: nothing is limited.
    var use: MemoryGroup.Use? {
        let limit = bytesLimit.load(ordering: .relaxed)
        return limit > 0 ? MemoryGroup.Use(used: bytesUsed.load(ordering: .relaxed), limit: limit) : nil
    }

    /// - Returns: the level, and whether it is another one.
    func measured(_ use: MemoryGroup.Use?) -> (level: Level, isAnother: Bool) {
        bytesUsed.store(use?.used ?? 0, ordering: .relaxed)
        bytesLimit.store(use?.limit ?? 0, ordering: .relaxed)
        let before = level
        let level = use.map { before.next(at: $0.share) } ?? .none
        value.store(level.rawValue, ordering: .relaxed)
        return (level, level != before)
    }
}
