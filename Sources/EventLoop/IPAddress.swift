internal import Glibc

/// An IPv4 or IPv6 address, without zone or port.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in network order: all 128 bits of IPv6; of IPv4 the lower 32 bits of `low`.
    private let high: UInt64
    private let low: UInt64
    package let isIPv6: Bool

    /// Reads exactly what `inet_pton` reads: dotted quads without leading zeros, RFC 4291 text; no brackets,
    /// no zone, no spaces, no shortened IPv4 forms.
    package init?(_ text: String) {
        // A NUL would end the C string: "127.0.0.1\0.example.com" must not be read as an address.
        guard text.utf8.count < 46, !text.utf8.contains(0) else { return nil }
        var v4 = in_addr()
        var v6 = in6_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            self.init(v4)
        } else if inet_pton(AF_INET6, text, &v6) == 1 {
            self.init(v6)
        } else {
            return nil
        }
    }

    /// 4 bytes make an IPv4 address, 16 an IPv6 one, in network order; any other number is nil.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        isIPv6 = bytes.count == 16
        var value: (high: UInt64, low: UInt64) = (0, 0)
        for byte in bytes {
            value.high = value.high << 8 | value.low >> 56
            value.low = value.low << 8 | UInt64(byte)
        }
        (high, low) = value
    }

    init(_ address: in_addr) {
        high = 0
        low = UInt64(UInt32(bigEndian: address.s_addr))
        isIPv6 = false
    }

    init(_ address: in6_addr) {
        (high, low) = withUnsafeBytes(of: address) { bytes in
            (
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        isIPv6 = true
    }

    /// The four numbers of an IPv4 address; nil of IPv6.
    package var octets: (UInt8, UInt8, UInt8, UInt8)? {
        guard !isIPv6 else { return nil }
        func octet(_ shift: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: low >> shift) }
        return (octet(24), octet(16), octet(8), octet(0))
    }

    /// 4 or 16 bytes in network order.
    package var bytes: [UInt8] {
        let words = isIPv6 ? [high, low] : [low << 32]
        return Array(words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } }
            .prefix(isIPv6 ? 16 : 4))
    }

    var v4: in_addr {
        in_addr(s_addr: UInt32(truncatingIfNeeded: low).bigEndian)
    }

    var v6: in6_addr {
        var address = in6_addr()
        withUnsafeMutableBytes(of: &address) { bytes in
            bytes.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
            bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        return address
    }

    /// The canonical text: RFC 5952 for IPv6 (which is what glibc's `inet_ntop` writes), dotted quads for IPv4.
    package var description: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            let text: UnsafePointer<CChar>?
            if isIPv6 {
                var address = v6
                text = inet_ntop(AF_INET6, &address, buffer.baseAddress, socklen_t(buffer.count))
            } else {
                var address = v4
                text = inet_ntop(AF_INET, &address, buffer.baseAddress, socklen_t(buffer.count))
            }
            return text.map { String(cString: $0) } ?? ""
        }
    }
}
