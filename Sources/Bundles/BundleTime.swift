internal import PinproxySecurity
internal import PinproxyTLS

/// Instants as bundles write them (RFC 3339): `2027-06-30T12:00:00Z`.
package enum BundleTime {
    /// The first instant of the year 10000, which RFC 3339 can't write.
    package static let end: Int64 = 253_402_300_800

    /// Nil unless it is a date with a time and an offset, in 1970 or later.
    static func parse(_ text: String) -> Int64? {
        guard text.utf8.contains(UInt8(ascii: "T")), let time = DateText.parse(text), time >= 0, time < end else {
            return nil
        }
        return time
    }

    /// - Parameter time: in Unix seconds.
    package static func text(_ time: Int64) -> String {
        func two(_ number: Int64) -> String { (number < 10 ? "0" : "") + "\(number)" }
        let time = min(max(time, 0), end - 1)
        let second = time % 86_400
        return "\(CalendarDate(time))T\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))Z"
    }
}
