internal import Glibc

package enum WallClock {
    /// Milliseconds since 1970 in UTC.
    package static func milliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

/// Writes times as RFC 3339 in UTC with milliseconds, `2026-11-21T04:12:00.123Z`. Each second is formatted once.
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

    private mutating func format() {
        var parts = tm()
        var seconds = time_t(second)
        gmtime_r(&seconds, &parts)
        text.removeAll(keepingCapacity: true)
        Self.append(Int64(parts.tm_year) + 1900, digits: 4, to: &text)
        for (separator, part) in [
            ("-", parts.tm_mon + 1), ("-", parts.tm_mday), ("T", parts.tm_hour), (":", parts.tm_min),
            (":", parts.tm_sec),
        ] {
            text.append(contentsOf: separator.utf8)
            Self.append(Int64(part), digits: 2, to: &text)
        }
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
    /// Rounds down, for times before 1970.
    fileprivate func flooredQuotientAndRemainder(dividingBy divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
