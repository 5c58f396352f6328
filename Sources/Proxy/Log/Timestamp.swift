internal import Glibc

/// The wall clock, as the log writes it.
package enum WallClock {
    /// Milliseconds since 1970 in UTC.
    package static func milliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

/// Writes times as RFC 3339 in UTC with milliseconds, e.g. `2026-11-21T04:12:00.123Z`. What is the
/// same for all lines of a second is worked out once.
package struct TimestampWriter: Sendable {
    private var second = Int64.min
    private var text: [UInt8] = []

    package init() {}

    /// - Parameter milliseconds: since 1970 in UTC, in the years 0 to 9999.
    package mutating func append(_ milliseconds: Int64, to line: inout [UInt8]) {
        let (second, rest) = milliseconds.flooredQuotientAndRemainder(dividingBy: 1000)
        if second != self.second {
            self.second = second
            format()
        }
        line.append(contentsOf: text)
        line.append(UInt8(ascii: "."))
        Self.append(rest, digits: 3, to: &line)
        line.append(UInt8(ascii: "Z"))
    }

    /// Everything up to the seconds.
    private mutating func format() {
        let (days, time) = second.flooredQuotientAndRemainder(dividingBy: 86_400)
        let (year, month, day) = Self.date(daysSince1970: days)
        text.removeAll(keepingCapacity: true)
        Self.append(year, digits: 4, to: &text)
        for part in [month, day] {
            text.append(UInt8(ascii: "-"))
            Self.append(part, digits: 2, to: &text)
        }
        for (separator, part) in [("T", time / 3600), (":", time / 60 % 60), (":", time % 60)] {
            text.append(contentsOf: separator.utf8)
            Self.append(part, digits: 2, to: &text)
        }
    }

    /// The proleptic Gregorian date. Years are counted from March, so that the leap day is the
    /// last one, in eras of 400 years.
    private static func date(daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = (daysSince1970 + 719_468).flooredQuotientAndRemainder(dividingBy: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month,
            dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        )
    }

    private static func append(_ number: Int64, digits: Int, to text: inout [UInt8]) {
        var divisor: Int64 = 1
        for _ in 1..<digits { divisor *= 10 }
        while divisor > 0 {
            text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
    }
}

extension Int64 {
    /// Division that rounds down, so that times before 1970 come out right.
    fileprivate func flooredQuotientAndRemainder(dividingBy divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
