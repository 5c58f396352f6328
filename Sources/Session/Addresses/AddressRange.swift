package import PinproxyAddresses

/// A range of IP addresses, e.g. `127.0.0.0/8` or `::1`.
package struct AddressRange: Sendable, Hashable, CustomStringConvertible {
    /// The first address, 4 or 16 bytes in network order.
    package let bytes: [UInt8]
    package let prefixLength: Int
    /// In canonical form.
    package let description: String

    /// - Parameter prefixLength: nil: one address.
    /// - Returns: nil if bits are set beyond the prefix, as in `10.1.2.3/8`.
    package init?(_ address: IPAddress, prefixLength: Int? = nil) {
        let width = address.bytes.count * 8
        let length = prefixLength ?? width
        guard (0...width).contains(length) else { return nil }
        var network = address.bytes
        for index in network.indices {
            let bits = min(max(length - index * 8, 0), 8)
            network[index] &= bits == 0 ? 0 : 0xFF << UInt8(8 - bits)
        }
        guard network == address.bytes else { return nil }
        // IPv4-mapped ranges are kept as IPv4.
        let isMapped = width == 128 && length >= 96 && network.starts(with: Self.mappedPrefix)
        bytes = isMapped ? Array(network[12...]) : network
        self.prefixLength = isMapped ? length - 96 : length
        let first = isMapped ? IPAddress(bytes: bytes) ?? address : address
        description = prefixLength == nil ? "\(first)" : "\(first)/\(self.prefixLength)"
    }

    /// True if the address (4 or 16 bytes) is in the range; IPv4-mapped ones (RFC 4291 section 2.5.5.2) count as IPv4.
    package func contains(_ address: [UInt8]) -> Bool {
        var candidate = address[...]
        if bytes.count == 4, address.count == 16, address.starts(with: Self.mappedPrefix) {
            candidate = address.dropFirst(12)
        }
        guard candidate.count == bytes.count else { return false }
        var bitsLeft = prefixLength
        for (ours, theirs) in zip(bytes, candidate) where bitsLeft > 0 {
            let mask: UInt8 = bitsLeft >= 8 ? 0xFF : ~(0xFF >> UInt8(bitsLeft))
            if ours & mask != theirs & mask { return false }
            bitsLeft -= 8
        }
        return true
    }

    private static let mappedPrefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
}
