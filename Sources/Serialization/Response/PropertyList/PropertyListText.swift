/// The values that property lists in XML have as text, read as Foundation reads them.
enum PropertyListText {
    /// Decimal or hexadecimal, of at most 64 bits, with or without a sign.
    static func integer(_ text: [UInt8]) -> PropertyListValue? {
        var rest = text[...]
        rest.skipSpace()
        let isNegative = rest.first == UInt8(ascii: "-")
        if isNegative || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
        rest.skipSpace()
        var radix: Int128 = 10
        if rest.starts(with: "0x".utf8) || rest.starts(with: "0X".utf8) {
            rest.removeFirst(2)
            radix = 16
        }
        guard !rest.isEmpty else { return nil }
        var magnitude: Int128 = 0
        for byte in rest {
            guard let digit = Hexadecimal.digit(byte), digit < radix else { return nil }
            magnitude = magnitude * radix + Int128(digit)
            guard magnitude <= Int128(UInt64.max) else { return nil }
        }
        let number = isNegative ? -magnitude : magnitude
        return number >= Int128(Int64.min) ? .integer(number) : nil
    }

    /// A number without a fraction is an integer where 64 bits hold it.
    static func real(_ text: [UInt8]) -> PropertyListValue? {
        guard let number = double(text) else { return nil }
        if let integer = Int64(exactly: number) { return .integer(Int128(integer)) }
        if let integer = UInt64(exactly: number) { return .integer(Int128(integer)) }
        return .real(number)
    }

    private static func double(_ text: [UInt8]) -> Double? {
        let text = text.drop(while: \.isXMLSpace)
        let word = String(decoding: text.prefix(16), as: UTF8.self).lowercased()
        switch text.count > 16 ? "" : word {
        case "nan": return .nan
        case "inf", "+inf", "infinity", "+infinity": return .infinity
        case "-inf", "-infinity": return -.infinity
        default:
            guard text.allSatisfy({ (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }) else { return nil }
            return Double(String(decoding: text, as: UTF8.self))
        }
    }

    /// `2027-06-30T12:00:00Z`; a year may have more digits, or a sign.
    static func date(_ text: [UInt8]) -> PropertyListValue? {
        var rest = text[...]
        let isNegative = rest.first == UInt8(ascii: "-")
        if isNegative { rest.removeFirst() }
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        guard (4...9).contains(digits.count), let year = digits.number, rest.count == digits.count + 16 else {
            return nil
        }
        rest = rest.dropFirst(digits.count)
        var numbers: [Int] = []
        for separator in "--T::".utf8 {
            guard rest.first == separator, let number = rest.dropFirst().prefix(2).number else { return nil }
            numbers.append(number)
            rest = rest.dropFirst(3)
        }
        guard rest.elementsEqual("Z".utf8), numbers.count == 5 else { return nil }
        // A month beyond the twelfth is one of the next year, as a day beyond the last is one of the next month.
        let months = 12 * (isNegative ? -year : year) + numbers[0] - 1
        let days =
            daysSince1970(year: months.flooredQuotient(12), month: months - 12 * months.flooredQuotient(12) + 1)
            + numbers[1] - 1
        return .date(Double(((days * 24 + numbers[2]) * 60 + numbers[3]) * 60 + numbers[4]))
    }

    /// Days from 1970 to a month's first day, in the Gregorian calendar.
    private static func daysSince1970(year: Int, month: Int) -> Int {
        // Counted from March on, a year has its leap day at its end.
        let year = month > 2 ? year : year - 1
        let era = year.flooredQuotient(400)
        let yearOfEra = year - 400 * era
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5
        return 146_097 * era + 365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// base64. Other characters are ignored, and what is left over after the last four.
    static func data(_ text: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var (bits, count, padding) = (UInt32(0), 0, 0)
        for character in text {
            if character == UInt8(ascii: "=") {
                padding += 1
            } else if !character.isXMLSpace {
                padding = 0
            }
            guard let sextet = sextet(character) else { continue }
            bits = bits << 6 | UInt32(sextet)
            count += 1
            guard count % 4 == 0 else { continue }
            bytes.append(UInt8(truncatingIfNeeded: bits >> 16))
            if padding < 2 { bytes.append(UInt8(truncatingIfNeeded: bits >> 8)) }
            if padding < 1 { bytes.append(UInt8(truncatingIfNeeded: bits)) }
        }
        return bytes
    }

    private static func sextet(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        case UInt8(ascii: "="): 0
        default: nil
        }
    }
}

extension UInt8 {
    var isXMLSpace: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }
}

extension ArraySlice<UInt8> {
    fileprivate mutating func skipSpace() {
        while let byte = first, byte.isXMLSpace { removeFirst() }
    }

    /// Decimal digits and nothing else.
    fileprivate var number: Int? {
        guard !isEmpty, allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return reduce(0) { 10 * $0 + Int($1 - 0x30) }
    }
}

extension Int {
    fileprivate func flooredQuotient(_ divisor: Int) -> Int { (self - (self % divisor + divisor) % divisor) / divisor }
}
