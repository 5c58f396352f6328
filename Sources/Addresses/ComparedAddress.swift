/// Different addresses may name the same host. Hosts are compared by their ``canonical`` addresses.
extension IPAddress {
    /// 127.0.0.0/8 and ::1; not IPv4-mapped ones.
    package var isLoopback: Bool { isIPv6 ? high == 0 && low == 1 : low >> 24 == 127 }

    /// `0.0.0.0` or `::`: every address of the machine, to listen on.
    package var isUnspecified: Bool { high == 0 && low == 0 }

    /// The IPv4 address that an IPv4-mapped IPv6 address stands for (RFC 4291 section 2.5.5.2); any other is itself.
    package var unmapped: IPAddress { isIPv6 && high == 0 && low >> 32 == 0xFFFF ? embedded : self }

    /// The address that is dialled and compared: IPv4 for an IPv4-mapped one, loopback for the unspecified one.
    package var canonical: IPAddress {
        let address = unmapped
        guard address.isUnspecified else { return address }
        return IPAddress(high: 0, low: address.isIPv6 ? 1 : 0x7F00_0001, isIPv6: address.isIPv6)
    }

    /// The IPv4 address that a translator makes of this one: NAT64's well-known prefix (RFC 6052 section 2.1),
    /// translated (RFC 2765 section 2.1) or compatible (RFC 4291 section 2.5.5.1). An entry for one covers the other,
    /// unless that has its own.
    package var translated: IPAddress? {
        guard isIPv6, low & 0xFFFF_FF00 != 0 else { return nil }
        switch (high, low >> 32) {
        case (0x0064_FF9B_0000_0000, 0), (0, 0xFFFF_0000), (0, 0): return embedded
        default: return nil
        }
    }

    /// The IPv4 address in the last 32 bits of an IPv6 one.
    private var embedded: IPAddress { IPAddress(high: 0, low: low & 0xFFFF_FFFF, isIPv6: false) }

    /// True when the text can only be an address: its last label is a number (the WHATWG's "ends in a number"), or it
    /// holds a colon among the characters of IPv6. Allocates nothing.
    package static func isMeant(by text: Span<UInt8>) -> Bool {
        var index = text.count
        var isNumber = index > 0
        while index > 0 {
            index -= 1
            switch text[index] {
            case UInt8(ascii: ":"): return true
            case UInt8(ascii: "0")...UInt8(ascii: "9"): continue
            case UInt8(ascii: "."):
                if isNumber { return index < text.count - 1 }
            case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): isNumber = false
            default: return false
            }
        }
        return isNumber
    }
}
