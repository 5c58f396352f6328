/// The character classes of RFC 9110 and RFC 3986, as two 64-bit masks each.
struct ASCIISet: Sendable {
    let low: UInt64
    let high: UInt64

    init(_ members: String) {
        var low: UInt64 = 0
        var high: UInt64 = 0
        for byte in members.utf8 {
            if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte & 63) }
        }
        self.low = low
        self.high = high
    }

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        let mask = byte < 64 ? low : high
        return byte < 128 && (mask >> UInt64(byte & 63)) & 1 == 1
    }

    private static let alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

    /// tchar (RFC 9110 section 5.6.2): methods, field names, codings.
    static let token = ASCIISet(alphanumeric + "!#$%&'*+-.^_`|~")
    /// A token of a structured field (RFC 8941 section 3.3.4), after its first character.
    static let structuredToken = ASCIISet(alphanumeric + "!#$%&'*+-.^_`|~:/")
    /// RFC 3986 section 3.2.2 without the comma, which in practice only comes from two joined values.
    static let hostText = ASCIISet(alphanumeric + "-._~%!$&'()*+;=:[]")
    /// scheme (RFC 3986 section 3.1), after its first letter.
    static let scheme = ASCIISet(alphanumeric + "+-.")
    /// Labels of host names. Underscores are not allowed in host names, but in use.
    static let hostLabel = ASCIISet(alphanumeric + "-_")
}

extension UInt8 {
    static let carriageReturn: UInt8 = 0x0D
    static let lineFeed: UInt8 = 0x0A
    static let space: UInt8 = 0x20

    @inline(__always) var isBlank: Bool { self == 0x20 || self == 0x09 }
    @inline(__always) var isDigit: Bool { self &- 0x30 < 10 }
    @inline(__always) var isLetter: Bool { (self | 0x20) &- 0x61 < 26 }
    @inline(__always) var lowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
    /// Whether a field value may contain it (RFC 9110 section 5.5): anything but controls; a tab is allowed.
    @inline(__always) var isFieldText: Bool { (self >= 0x20 && self != 0x7F) || self == 0x09 }

    @inline(__always) var hexValue: UInt8? {
        if isDigit { return self &- 0x30 }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter + 10 : nil
    }
}
