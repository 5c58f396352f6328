/// A token bucket as a generic cell rate algorithm: `burst` events at once, `perSecond` each second. Its state is the
/// time at which it is full again.
struct TokenBucket: Sendable {
    private let interval: UInt64
    private let depth: UInt64
    private var fullAt: UInt64 = 0

    init(_ rate: FloodLimits.Rate) {
        interval = 1_000_000_000 / UInt64(max(1, rate.perSecond))
        depth = interval * UInt64(max(0, rate.burst))
    }

    /// Takes a token; false if the bucket is empty.
    /// - Parameter now: monotonic nanoseconds.
    mutating func take(at now: UInt64) -> Bool {
        let base = max(fullAt, now)
        guard base - now + interval <= depth else { return false }
        fullAt = base + interval
        return true
    }

    /// Puts tokens back, up to `burst`.
    mutating func give(_ count: UInt64) { fullAt -= min(fullAt, interval * count) }
}
