package import PinproxyTLS

/// Bounds of counts and dates in a history's file, against overflow.
package enum HistoryBounds {
    private static let counts = 0...(1 << 53)
    /// Some thirty thousand years around 1970; certificates end with the year 9999.
    private static let dates: ClosedRange<UnixTime> = -(1 << 40)...(1 << 40)

    package static func admit(counts: Int...) -> Bool { counts.allSatisfy(Self.counts.contains) }

    package static func admit(dates: UnixTime?...) -> Bool { dates.allSatisfy { $0.map(Self.dates.contains) ?? true } }
}
