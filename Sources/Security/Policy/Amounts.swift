// Amounts in messages: "1 day", not "1 days".

package import PinproxyTLS

/// The distance to another instant in the largest whole unit, rounded down: `in 12 days`, `1 hour ago`.
package struct TimeDistance: Sendable, CustomStringConvertible {
    package let isPast: Bool
    /// Without the direction, e.g. `12 days`.
    package let span: String

    package init(from now: UnixTime, to then: UnixTime) {
        isPast = then <= now
        let (difference, overflow) = then.subtractingReportingOverflow(now)
        span = Self.span(seconds: overflow ? .max : difference.magnitude)
    }

    package var description: String { isPast ? "\(span) ago" : "in \(span)" }

    private static func span(seconds: UInt64) -> String {
        let units: [(seconds: UInt64, name: String)] = [(86_400, "day"), (3600, "hour"), (60, "minute")]
        guard let unit = units.first(where: { seconds >= $0.seconds }) else { return "less than a minute" }
        return "\(Count(Int(clamping: seconds / unit.seconds), unit.name))"
    }
}

package struct Count: Sendable, CustomStringConvertible {
    package let description: String

    /// - Parameter plural: if not made with an s.
    package init(_ number: Int, _ noun: String, plural: String? = nil) {
        description = number == 1 ? "1 \(noun)" : "\(number) \(plural ?? noun + "s")"
    }
}
