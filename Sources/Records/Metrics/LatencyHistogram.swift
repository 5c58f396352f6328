/// Durations in buckets from 100 µs to 100 s.
package struct LatencyHistogram: Sendable {
    /// Upper ends in nanoseconds; one more bucket has no end.
    static let bounds: [UInt64] = [
        100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000,
        250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 25_000_000_000,
        50_000_000_000, 100_000_000_000,
    ]

    private(set) var counts = InlineArray<20, UInt64>(repeating: 0)
    /// In nanoseconds.
    private(set) var sum: UInt64 = 0

    var count: UInt64 {
        var total: UInt64 = 0
        for index in counts.indices { total += counts[index] }
        return total
    }

    /// Most durations are short: the first comparisons decide.
    @inline(__always)
    mutating func note(_ nanoseconds: UInt64) {
        counts[Self.bucket(nanoseconds)] &+= 1
        sum &+= nanoseconds
    }

    @inline(__always)
    static func bucket(_ nanoseconds: UInt64) -> Int {
        switch nanoseconds {
        case ...100_000: 0
        case ...250_000: 1
        case ...500_000: 2
        case ...1_000_000: 3
        case ...2_500_000: 4
        case ...5_000_000: 5
        case ...10_000_000: 6
        case ...25_000_000: 7
        case ...50_000_000: 8
        case ...100_000_000: 9
        case ...250_000_000: 10
        case ...500_000_000: 11
        case ...1_000_000_000: 12
        case ...2_500_000_000: 13
        case ...5_000_000_000: 14
        case ...10_000_000_000: 15
        case ...25_000_000_000: 16
        case ...50_000_000_000: 17
        case ...100_000_000_000: 18
        default: 19
        }
    }

    mutating func add(_ other: LatencyHistogram) {
        for index in counts.indices { counts[index] &+= other.counts[index] }
        sum &+= other.sum
    }
}
