import PinproxyAddresses

extension IPAddress {
    /// The address and the IPv4 addresses embedded in it (NAT64, 6to4, ISATAP …), which packets may reach as well.
    var readings: [IPAddress] {
        let canonical = canonical
        let spellings = canonical == self ? [self] : [self, canonical]
        guard canonical.isIPv6 else { return spellings }
        return spellings + Self.wrappedIPv4(canonical.bytes).compactMap { IPAddress(bytes: $0) }
    }

    /// The IPv4 addresses that an IPv6 address embeds: several, since prefix and interface are independent.
    private static func wrappedIPv4(_ b: [UInt8]) -> [[UInt8]] {
        wrappedByPrefix(b) + wrappedByInterface(b)
    }

    private static func wrappedByPrefix(_ b: [UInt8]) -> [[UInt8]] {
        let last = Array(b[12...])
        // Compatible, deprecated (RFC 4291 section 2.5.5.1), and translated (RFC 2765 section 2.1).
        if b[..<12].allSatisfy({ $0 == 0 }), last[..<3] != [0, 0, 0] { return [last] }
        if b[..<8].allSatisfy({ $0 == 0 }), b[8] == 0xff, b[9] == 0xff, b[10] == 0, b[11] == 0 { return [last] }
        // NAT64: the well-known prefix, and the local one (RFC 8215).
        if b[..<12] == [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0] { return [last] }
        if b[..<6] == [0, 0x64, 0xff, 0x9b, 0, 1] { return wrappedByLocalTranslator(b) }
        // 6to4.
        if b[0] == 0x20, b[1] == 0x02 { return [Array(b[2..<6])] }
        // Teredo (RFC 4380 section 4): the server, which gets a packet too, and the client's inverted bits.
        if b[..<4] == [0x20, 0x01, 0, 0] { return [Array(b[4..<8]), last.map { ~$0 }] }
        return []
    }

    /// The local prefix has 48, 56, 64 or 96 bits (RFC 6052 section 2.2). A wrong reading gives 0.0.0.0/8, which no
    /// translator reaches.
    private static func wrappedByLocalTranslator(_ b: [UInt8]) -> [[UInt8]] {
        let cuts = [
            Array(b[12...]), [b[6], b[7], b[9], b[10]], [b[7], b[9], b[10], b[11]], [b[9], b[10], b[11], b[12]],
        ]
        return cuts.filter { $0[0] != 0 }
    }

    /// ISATAP (RFC 5214 section 6.1), under any prefix. The bits for "universal" and "group" may be set or not.
    private static func wrappedByInterface(_ b: [UInt8]) -> [[UInt8]] {
        b[8] & 0xfc == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe ? [Array(b[12...])] : []
    }
}
