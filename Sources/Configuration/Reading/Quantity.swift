package import PinproxySession

package enum Quantity {
    private static let timeUnits: [(name: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]
    private static let sizeUnits: [(name: String, bytes: Int)] = [
        ("B", 1), ("kB", 1000), ("KiB", 1 << 10), ("MB", 1_000_000), ("MiB", 1 << 20), ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
    ]

    /// `10s`, `500ms`, `1h30m`, `30d`: whole numbers, each with a unit.
    /// - Parameter usual: the most likely unit where none is written.
    static func duration(
        _ text: String, usual: (unit: String, name: String) = ("s", "seconds")
    ) -> Result<Duration, Reason> {
        let example = "write a number and a unit (ms, s, m, h, d), e.g. 10s or 1h30m"
        var rest = text[...]
        var total: Int64 = 0
        repeat {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            rest = rest[digits.endIndex...]
            let unit = rest.prefix { $0.isLetter }
            rest = rest[unit.endIndex...]
            guard !digits.isEmpty else { return .failure(Reason("\"\(text)\" is not a time; \(example)")) }
            guard !unit.isEmpty else {
                let hint =
                    digits.count == text.count
                    ? "; write \(text)\(usual.unit) if \(usual.name) are meant" : "; \(example)"
                return .failure(Reason("\"\(text)\" has no unit\(hint)"))
            }
            guard let factor = timeUnits.first(where: { $0.name == unit })?.milliseconds else {
                return .failure(Reason("\"\(unit)\" is not a unit of time; \(example)"))
            }
            let (part, isTooLong) = (Int64(digits) ?? .max).multipliedReportingOverflow(by: factor)
            let (sum, isSumTooLong) = total.addingReportingOverflow(part)
            guard !isTooLong, !isSumTooLong else { return .failure(Reason("\"\(text)\" is too long a time")) }
            total = sum
        } while !rest.isEmpty
        return .success(.milliseconds(total))
    }

    /// `64KiB`, `8MiB`, `1GiB`, `512B`, `100MB`, or a bare number of bytes.
    static func size(_ text: String) -> Result<Int, Reason> {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let unit = text[digits.endIndex...].drop { $0 == " " }
        guard !digits.isEmpty else {
            return .failure(
                Reason("\"\(text)\" is not a size; write a number and a unit (B, KiB, MiB, GiB), e.g. 64KiB"))
        }
        guard let factor = unit.isEmpty ? 1 : sizeUnits.first(where: { $0.name == unit })?.bytes else {
            let meant = sizeUnits.last { $0.name.first == unit.uppercased().first }?.name
            let hint = meant.map { "write \(digits)\($0)" } ?? "write B, KiB, MiB or GiB"
            return .failure(Reason("\"\(unit)\" is not a unit of size; \(hint)"))
        }
        let (bytes, isTooBig) = (Int(digits) ?? .max).multipliedReportingOverflow(by: factor)
        guard !isTooBig else { return .failure(Reason("\"\(text)\" is too big")) }
        return .success(bytes)
    }

    /// A time as it would be written, e.g. `1h30m`.
    package static func text(_ duration: Duration) -> String {
        var milliseconds = duration.components.seconds * 1000 + duration.components.attoseconds / 1_000_000_000_000_000
        guard milliseconds > 0 else { return "0s" }
        var text = ""
        for unit in timeUnits.reversed() where milliseconds >= unit.milliseconds {
            text += "\(milliseconds / unit.milliseconds)\(unit.name)"
            milliseconds %= unit.milliseconds
        }
        return text
    }

    /// A size as it would be written, e.g. `64KiB`.
    package static func text(bytes: Int) -> String {
        let unit = sizeUnits.last { bytes >= $0.bytes && bytes % $0.bytes == 0 } ?? sizeUnits[0]
        return "\(bytes / unit.bytes)\(unit.name)"
    }
}

extension Duration {
    /// A time as the files write it, e.g. `1h30m`, for the command line; nil if it is not one.
    package init?(written text: String) {
        guard case .success(let duration) = Quantity.duration(text) else { return nil }
        self = duration
    }
}

extension Quantity {
    /// A rate as it would be written, e.g. `1KiB/5m`.
    package static func text(_ rate: MinimumRate?) -> String {
        rate.map { "\(text(bytes: $0.bytes))/\(text($0.window))" } ?? "off"
    }
}
