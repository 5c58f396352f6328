package import Configuration
package import EventLoop

/// Who may connect to the proxy at all (`proxy.allow_clients`).
package struct ClientAllowList: Sendable {
    private let ranges: [AddressRange]

    package init(_ ranges: [AddressRange]) {
        self.ranges = ranges
    }

    /// True if the address is in one of the ranges. An IPv4 client that an IPv6 socket shows as
    /// `::ffff:192.0.2.1` is judged as the IPv4 address that it is. An empty list allows nobody.
    package func allows(_ address: IPAddress) -> Bool {
        let bytes = address.bytes
        return ranges.contains { $0.contains(bytes) }
    }
}
