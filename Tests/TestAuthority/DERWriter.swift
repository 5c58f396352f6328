/// DER (X.690) written by hand, so that a test can make certificates that a library would refuse to make.
public enum DERWriter {
    /// A tag with its contents.
    public static func value(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        if contents.count < 0x80 {
            length = [UInt8(contents.count)]
        } else {
            var rest = contents.count
            while rest > 0 {
                length.insert(UInt8(rest & 0xFF), at: 0)
                rest >>= 8
            }
            length.insert(0x80 | UInt8(length.count), at: 0)
        }
        return [tag] + length + contents
    }

    public static func sequence(_ parts: [UInt8]...) -> [UInt8] { value(0x30, parts.flatMap(\.self)) }
    public static func set(_ part: [UInt8]) -> [UInt8] { value(0x31, part) }
    public static func octets(_ bytes: [UInt8]) -> [UInt8] { value(0x04, bytes) }
    public static func bits(_ bytes: [UInt8], unused: UInt8 = 0) -> [UInt8] { value(0x03, [unused] + bytes) }
    public static func utf8(_ text: String) -> [UInt8] { value(0x0C, Array(text.utf8)) }
    public static let yes: [UInt8] = [0x01, 0x01, 0xFF]
    public static let null: [UInt8] = [0x05, 0x00]

    /// An unsigned integer given by its bytes, most significant first.
    public static func integer(_ bytes: [UInt8]) -> [UInt8] {
        var trimmed = Array(bytes.drop { $0 == 0 })
        if trimmed.isEmpty || trimmed[0] & 0x80 != 0 { trimmed.insert(0, at: 0) }
        return value(0x02, trimmed)
    }

    public static func integer(_ number: Int) -> [UInt8] {
        integer(withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) })
    }

    /// An object identifier in dotted form, e.g. `2.5.29.17`.
    public static func identifier(_ dotted: String) -> [UInt8] {
        let arcs = dotted.split(separator: ".").compactMap { UInt64($0) }
        precondition(arcs.count >= 2, "not an object identifier: \(dotted)")
        var bytes: [UInt8] = []
        for arc in [arcs[0] * 40 + arcs[1]] + arcs.dropFirst(2) {
            var group = [UInt8(arc & 0x7F)]
            var rest = arc >> 7
            while rest > 0 {
                group.insert(0x80 | UInt8(rest & 0x7F), at: 0)
                rest >>= 7
            }
            bytes += group
        }
        return value(0x06, bytes)
    }

    /// The SubjectPublicKeyInfo of an RSA key of these numbers, big-endian.
    public static func rsa(modulus: [UInt8], exponent: [UInt8]) -> [UInt8] {
        sequence(
            sequence(identifier("1.2.840.113549.1.1.1"), null),
            bits(sequence(integer(modulus), integer(exponent))))
    }

    /// UTCTime until 2049, GeneralizedTime after it (RFC 5280 section 4.1.2.5).
    public static func time(_ unixSeconds: Int64) -> [UInt8] {
        let day = unixSeconds.quotient(by: 86_400)
        let second = unixSeconds - day * 86_400
        // Days to the civil calendar, in eras of 400 years beginning on March 1.
        let shifted = day + 719_468
        let era = shifted.quotient(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let dayOfMonth = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let rest = [month, dayOfMonth, second / 3600, second / 60 % 60, second % 60].map { two($0) }.joined() + "Z"
        return (1950..<2050).contains(year)
            ? value(0x17, Array((two(year % 100) + rest).utf8))
            : value(0x18, Array((two(year / 100) + two(year % 100) + rest).utf8))
    }

    private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

extension Int64 {
    /// Division that rounds down, for instants before 1970.
    fileprivate func quotient(by divisor: Int64) -> Int64 {
        self >= 0 ? self / divisor : (self - divisor + 1) / divisor
    }
}
