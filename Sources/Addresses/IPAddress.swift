internal import Glibc

/// An IPv4 or IPv6 address, without zone or port. Its text is read and written here alone.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in network order: all 128 bits of IPv6; of IPv4 the lower 32 bits of `low`.
    let high: UInt64
    let low: UInt64
    package let isIPv6: Bool

    init(high: UInt64, low: UInt64, isIPv6: Bool) {
        self.high = high
        self.low = low
        self.isIPv6 = isIPv6
    }

    /// Reads exactly what `inet_pton` reads: no brackets, zone or spaces, nor `inet_aton`'s octal and shortened forms,
    /// about which programs disagree (RFC 6943 section 3.1.1).
    package init?(_ text: Span<UInt8>) {
        // A NUL would end the C string: "127.0.0.1\0.example.com" must not be read as an address.
        guard text.count < Int(INET6_ADDRSTRLEN), !text.indices.contains(where: { text[$0] == 0 }) else { return nil }
        let isIPv6 = text.indices.contains { text[$0] == UInt8(ascii: ":") }
        var words: (UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0)
        let isAddress = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: text.count + 1) { buffer in
            for offset in text.indices {
                unsafe buffer.initializeElement(at: offset, to: CChar(bitPattern: text[offset]))
            }
            unsafe buffer.initializeElement(at: text.count, to: 0)
            return unsafe inet_pton(isIPv6 ? AF_INET6 : AF_INET, buffer.baseAddress, &words) == 1
        }
        guard isAddress else { return nil }
        self.init(words: words, isIPv6: isIPv6)
    }

    package init?(_ text: some StringProtocol) {
        let text = String(text)
        self.init(text.utf8.span)
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

    /// The four numbers of an IPv4 address; nil of IPv6.
    package var octets: (UInt8, UInt8, UInt8, UInt8)? {
        guard !isIPv6 else { return nil }
        func octet(_ shift: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: low >> shift) }
        return (octet(24), octet(16), octet(8), octet(0))
    }

    /// 4 or 16 bytes in network order.
    package var bytes: [UInt8] {
        let count = isIPv6 ? 16 : 4
        return unsafe Array(unsafeUninitializedCapacity: count) { bytes, initialized in
            for place in 0..<count {
                let word = place + 8 < count ? high : low
                unsafe bytes.initializeElement(
                    at: place, to: UInt8(truncatingIfNeeded: word >> UInt64(8 * ((count - 1 - place) % 8))))
            }
            initialized = count
        }
    }

    /// The address in the form of `struct in_addr` or `struct in6_addr`, in the first 4 or all of 16 bytes.
    package var words: (UInt32, UInt32, UInt32, UInt32) {
        func word(_ value: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: value).bigEndian }
        return isIPv6 ? (word(high >> 32), word(high), word(low >> 32), word(low)) : (word(low), 0, 0, 0)
    }

    /// The reverse of ``words``.
    package init(words: (UInt32, UInt32, UInt32, UInt32), isIPv6: Bool) {
        func value(_ first: UInt32, _ second: UInt32) -> UInt64 {
            UInt64(UInt32(bigEndian: first)) << 32 | UInt64(UInt32(bigEndian: second))
        }
        high = isIPv6 ? value(words.0, words.1) : 0
        low = isIPv6 ? value(words.2, words.3) : UInt64(UInt32(bigEndian: words.0))
        self.isIPv6 = isIPv6
    }

    /// The one canonical text: RFC 5952 for IPv6 (which is what glibc's `inet_ntop` writes), dotted quads for IPv4.
    package var description: String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            var words = words
            let family = isIPv6 ? AF_INET6 : AF_INET
            let text = unsafe inet_ntop(family, &words, buffer.baseAddress, socklen_t(buffer.count))
            return unsafe text.map { unsafe String(cString: $0) } ?? ""
        }
    }
}
