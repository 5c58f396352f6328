internal import Security

/// A range of IP addresses, e.g. `127.0.0.0/8` or `::1` (`proxy.allow_clients`).
package struct AddressRange: Sendable, Hashable, CustomStringConvertible {
    /// The first address of the range, 4 or 16 bytes in network order.
    package let bytes: [UInt8]
    /// How many leading bits count.
    package let prefixLength: Int
    /// In canonical form.
    package let description: String

    /// True if the address (4 or 16 bytes in network order) is in the range. An IPv4-mapped IPv6
    /// address (RFC 4291 section 2.5.5.2) is judged as the IPv4 address that it is.
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

    /// Parses an address, or an address with `/bits`. Bits beyond the prefix must be zero: what
    /// was meant by `10.1.2.3/8` can't be known.
    static func parse(_ text: String) -> Result<AddressRange, Reason> {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = HostAddress(String(parts[0])) else {
            return .failure(
                Reason("\"\(text)\" is not an IP address or range; write e.g. 127.0.0.0/8, 192.0.2.7 or ::1"))
        }
        let width = address.bytes.count * 8
        guard parts.count == 2 else {
            return .success(AddressRange(bytes: address.bytes, prefixLength: width, description: "\(address)"))
        }
        guard let length = UInt8(parts[1]).map(Int.init), length <= width else {
            return .failure(Reason("\"\(text)\": what follows the slash must be a number from 0 to \(width)"))
        }
        var network = address.bytes
        for index in network.indices {
            let bits = min(max(length - index * 8, 0), 8)
            network[index] &= bits == 0 ? 0 : 0xFF << UInt8(8 - bits)
        }
        guard network == address.bytes else {
            return .failure(Reason("\"\(text)\" has bits set beyond its first \(length)"))
        }
        return .success(
            AddressRange(bytes: network, prefixLength: length, description: "\(address)/\(length)"))
    }
}
