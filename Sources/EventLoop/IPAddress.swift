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
        let count = isIPv6 ? 16 : 4
        return Array(unsafeUninitializedCapacity: count) { bytes, initialized in
            for place in 0..<count {
                let word = place + 8 < count ? high : low
                bytes.initializeElement(at: place, to: UInt8(truncatingIfNeeded: word >> UInt64(8 * ((count - 1 - place) % 8))))
            }
            initialized = count
        }
    }

    /// 127.0.0.0/8 and ::1; not IPv4-mapped ones.
    package var isLoopback: Bool { isIPv6 ? high == 0 && low == 1 : low >> 24 == 127 }

    /// The IPv4 address that an IPv4-mapped IPv6 address stands for (RFC 4291 section 2.5.5.2); any other is itself.
    package var unmapped: IPAddress {
        isIPv6 && high == 0 && low >> 32 == 0xFFFF ? IPAddress(in_addr(s_addr: UInt32(truncatingIfNeeded: low).bigEndian)) : self
    }

    /// The address in the form of `struct in_addr` or `struct in6_addr`, in the first 4 or all of 16 bytes.
    package var words: (UInt32, UInt32, UInt32, UInt32) {
        func word(_ value: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: value).bigEndian }
        return isIPv6 ? (word(high >> 32), word(high), word(low >> 32), word(low)) : (word(low), 0, 0, 0)
    }

    /// The reverse of ``words``.
    package init(words: (UInt32, UInt32, UInt32, UInt32), isIPv6: Bool) {
        func value(_ first: UInt32, _ second: UInt32) -> UInt64 { UInt64(UInt32(bigEndian: first)) << 32 | UInt64(UInt32(bigEndian: second)) }
        high = isIPv6 ? value(words.0, words.1) : 0
        low = isIPv6 ? value(words.2, words.3) : UInt64(UInt32(bigEndian: words.0))
        self.isIPv6 = isIPv6
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
