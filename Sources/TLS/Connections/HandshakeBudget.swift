import Glibc

/// Processor time for one handshake: a second bound, behind ``CertificateLimits``.
struct HandshakeBudget {
    /// One second. A handshake takes one or two milliseconds, up to a hundred on a slow machine.
    static let usual: UInt64 = 1_000_000_000

    let limit: UInt64
    private var spent: UInt64 = 0
    private var began: UInt64 = 0

    init(nanoseconds: UInt64) { limit = nanoseconds }

    /// Begins a step on the calling thread.
    mutating func begin() { began = Self.processorTime() }

    mutating func end() {
        spent += Self.processorTime() &- began
        began = 0
    }

    var isSpent: Bool { spent + (began == 0 ? 0 : Self.processorTime() &- began) > limit }

    private static func processorTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
    }
}
