/// Limits the leaves that a signer issues, so that a compromised proxy can't occupy it, or fill its log. Ample
/// for honest clients, since the proxy keeps a leaf for half of its life.
package struct LeafAllowance: Sendable {
    /// Leaves that may be issued at once: as many as the proxy keeps (``LeafCache``).
    package static let burst = 4096
    /// Leaves a second after that.
    package static let rate: UInt64 = 256
    private static let second: UInt64 = 1_000_000_000

    /// In billionths of a leaf.
    private let full: UInt64
    private var left: UInt64
    private var refilled: UInt64

    /// - Parameter nanoseconds: now, by a clock that only goes forward.
    package init(at nanoseconds: UInt64, burst: Int = burst) {
        full = UInt64(burst) * Self.second
        left = full
        refilled = nanoseconds
    }

    /// Takes one leaf. Returns whether there was one left.
    package mutating func take(at nanoseconds: UInt64) -> Bool {
        let (gained, isOver) = (nanoseconds - refilled).multipliedReportingOverflow(by: Self.rate)
        refilled = nanoseconds
        left = isOver || gained >= full - left ? full : left + gained
        guard left >= Self.second else { return false }
        left -= Self.second
        return true
    }
}
