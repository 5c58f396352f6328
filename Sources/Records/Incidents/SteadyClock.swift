import PinproxyEventLoop
import PinproxyTLS

/// Whether the wall clock has run evenly for a while. A record that is old by a clock that has just been set, or by
/// that of a machine that has just started, may not be old.
struct SteadyClock {
    static let trial: UInt64 = 3600 * 1_000_000_000
    /// Seconds: the most that it may gain or lose between two looks, by the monotonic clock.
    static let tolerance: UnixTime = 60

    private var last: (wall: UnixTime, monotonic: MonotonicTime)?
    private var steadySince = MonotonicTime(nanoseconds: 0)

    /// Called every minute or so.
    mutating func isSteady(at wall: UnixTime, _ monotonic: MonotonicTime) -> Bool {
        defer { last = (wall, monotonic) }
        guard let last else {
            steadySince = monotonic
            return false
        }
        let passed = UnixTime(clamping: (monotonic - last.monotonic) / 1_000_000_000)
        let expected = last.wall.addingReportingOverflow(passed).partialValue
        let (gap, isHuge) = wall.subtractingReportingOverflow(expected)
        if isHuge || gap.magnitude > Self.tolerance.magnitude { steadySince = monotonic }
        return monotonic - steadySince >= Self.trial
    }
}
