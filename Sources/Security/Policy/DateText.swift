import Glibc
package import PinproxyTLS

/// An instant as written in the pin file and after `--at`.
package enum DateText {
    /// Reads `2027-06-30` (the beginning of that day in UTC) or RFC 3339's `2027-06-30T12:00:00Z` and `…+02:00`,
    /// without fractions of a second; nil for anything else.
    package static func parse(_ text: String) -> UnixTime? {
        let form =
            #/
            ([0-9]{4})-([0-9]{2})-([0-9]{2})
            (?:[Tt\x20]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[Zz]|([+\-])([0-9]{2}):([0-9]{2})))?
            /#
        guard let match = text.wholeMatch(of: form) else { return nil }
        let (_, year, month, day, hour, minute, second, sign, offsetHours, offsetMinutes) = match.output
        func number(_ digits: Substring?) -> Int32 { digits.flatMap { Int32($0) } ?? 0 }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (number(year) - 1900, number(month) - 1, number(day))
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (number(hour), number(minute), number(second))
        let wanted = parts
        let time = timegm(&parts)
        // timegm turns 31 June into July: a corrected date is invalid.
        guard (parts.tm_year, parts.tm_mon, parts.tm_mday) == (wanted.tm_year, wanted.tm_mon, wanted.tm_mday),
            (parts.tm_hour, parts.tm_min, parts.tm_sec) == (wanted.tm_hour, wanted.tm_min, wanted.tm_sec),
            number(offsetHours) < 24, number(offsetMinutes) < 60
        else { return nil }
        let offset = UnixTime(number(offsetHours)) * 3600 + UnixTime(number(offsetMinutes)) * 60
        return UnixTime(time) - (sign == "-" ? -offset : offset)
    }
}
