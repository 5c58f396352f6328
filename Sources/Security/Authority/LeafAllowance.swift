package import TLS

/// How many leaves a signer issues: whoever has taken over the proxy can't stock up on them. Ample for honest clients,
/// since the proxy keeps a leaf for half of its life.
package struct LeafAllowance: Sendable {
    /// Leaves that may be issued at once.
    package static let burst = 512
    /// Leaves a second after that.
    package static let rate: UInt64 = 16
    /// Different names in 24 hours.
    package static let names = 16_384
    private static let day: UInt64 = 86_400_000_000_000
    private static let second: UInt64 = 1_000_000_000

    private var tokens = UInt64(burst) * second
    private var refilled: UInt64
    private var known: Set<ServerName> = []
    private var dayBegan: UInt64

    /// - Parameter nanoseconds: now, by a clock that only goes forward.
    package init(at nanoseconds: UInt64) {
        (refilled, dayBegan) = (nanoseconds, nanoseconds)
    }

    /// Takes one leaf for a name from the allowance. Returns why there is none left; nil: it may be issued.
    package mutating func take(_ name: ServerName, at nanoseconds: UInt64) -> String? {
        let passed = nanoseconds - refilled
        refilled = nanoseconds
        let full = UInt64(Self.burst) * Self.second
        let (gained, isOver) = passed.multipliedReportingOverflow(by: Self.rate)
        tokens = isOver || gained >= full - tokens ? full : tokens + gained
        if nanoseconds - dayBegan >= Self.day {
            dayBegan = nanoseconds
            known.removeAll()
        }
        guard tokens >= Self.second else { return "more than \(Self.burst) leaves at once, or \(Self.rate) a second, were asked for" }
        if !known.contains(name) {
            guard known.count < Self.names else { return "leaves for \(Self.names) names were issued within a day" }
            known.insert(name)
        }
        tokens -= Self.second
        return nil
    }
}
