import Glibc

/// The time of a Date or Last-Modified field (RFC 9110 section 5.6.7), in all three forms that a recipient must know:
/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.
package enum HTTPDate {
    /// Seconds since 1970, or nil. Two-digit years are 1970 to 2069; the day of the week isn't checked.
    package static func parse(_ value: Span<UInt8>) -> Int64? {
        var reader = DecimalReader(ByteRange(0, value.count), in: value)
        let weekday = reader.word()
        guard weekday.count >= 3 else { return nil }
        if reader.take(UInt8(ascii: ",")) { return weekday.count == 3 ? current(&reader) : rfc850(&reader) }
        return asctime(&reader)
    }

    /// The preferred form.
    /// - Parameter time: Unix seconds; years beyond 1 to 9999 become the nearest of these.
    package static func text(_ time: Int64) -> String {
        var seconds = time_t(min(max(time, -62_135_596_800), 253_402_300_799))
        var parts = unsafe tm()
        unsafe gmtime_r(&seconds, &parts)
        func two(_ number: CInt) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let year = String(unsafe parts.tm_year + 1900)
        let date = unsafe two(parts.tm_mday) + " " + names[Int(parts.tm_mon)] + " "
        let clock = unsafe two(parts.tm_hour) + ":" + two(parts.tm_min) + ":" + two(parts.tm_sec)
        return unsafe weekdays[Int(parts.tm_wday)] + ", " + date + String(repeating: "0", count: 4 - year.count) + year
            + " " + clock + " GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func current(_ reader: inout DecimalReader) -> Int64? {
        guard reader.take(.space), let day = reader.digits(2), reader.take(.space), let month = month(&reader),
            reader.take(.space), let year = reader.digits(4), reader.take(.space), let time = time(&reader),
            isGMT(&reader)
        else { return nil }
        return seconds(year, month, day, time)
    }

    private static func rfc850(_ reader: inout DecimalReader) -> Int64? {
        let dash = UInt8(ascii: "-")
        guard reader.take(.space), let day = reader.digits(2), reader.take(dash), let month = month(&reader),
            reader.take(dash), let year = reader.digits(2), reader.take(.space), let time = time(&reader),
            isGMT(&reader)
        else { return nil }
        return seconds(year + (year < 70 ? 2000 : 1900), month, day, time)
    }

    private static func asctime(_ reader: inout DecimalReader) -> Int64? {
        guard reader.take(.space), let month = month(&reader), reader.take(.space) else { return nil }
        let isShort = reader.take(.space)
        guard let day = reader.digits(isShort ? 1 : 2), reader.take(.space), let time = time(&reader),
            reader.take(.space), let year = reader.digits(4), reader.isAtEnd
        else { return nil }
        return seconds(year, month, day, time)
    }

    private static let months = names.map { $0.lowercased() }

    private static func month(_ reader: inout DecimalReader) -> Int? {
        months.firstIndex(of: reader.word()).map { $0 + 1 }
    }

    private static func time(_ reader: inout DecimalReader) -> Int? {
        let colon = UInt8(ascii: ":")
        // 60: a leap second.
        guard let hour = reader.digits(2), hour < 24, reader.take(colon), let minute = reader.digits(2), minute < 60,
            reader.take(colon), let second = reader.digits(2), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private static func isGMT(_ reader: inout DecimalReader) -> Bool {
        reader.take(.space) && reader.word() == "gmt" && reader.isAtEnd
    }

    private static func seconds(_ year: Int, _ month: Int, _ day: Int, _ time: Int) -> Int64? {
        // Unsafe in name: of `tm` the pointer to a zone's name, which isn't looked at.
        var parts = unsafe tm()
        unsafe (parts.tm_year, parts.tm_mon, parts.tm_mday) = (CInt(year - 1900), CInt(month - 1), CInt(day))
        let midnight = unsafe timegm(&parts)
        // timegm carries 31 June over into July; a date that had to be corrected is not one.
        guard unsafe parts.tm_mday == CInt(day) else { return nil }
        return Int64(midnight + time)
    }
}
