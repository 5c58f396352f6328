package import PinproxyEventLoop
import PinproxyLocalPeers

/// The client that takes a scarce place: a user of this machine, or else a network address.
package enum Claimant: Hashable, Sendable, CustomStringConvertible {
    case user(UInt32)
    /// The first 64 bits of an IPv6 address: one holder usually controls all addresses below them.
    case network(IPAddress)
    case unknown

    /// - Parameter user: by the kernel's data; nil: unknown.
    package init(user: UInt32?, source: Endpoint) {
        if let user {
            self = .user(user)
        } else if let ip = source.address?.ip.unmapped {
            let bytes = ip.bytes
            self = .network(ip.isIPv6 ? IPAddress(bytes: bytes[..<8] + [UInt8](repeating: 0, count: 8)) ?? ip : ip)
        } else {
            self = .unknown
        }
    }

    /// `user 1000`, `192.0.2.1`, `2001:db8::/64`
    package var description: String {
        switch self {
        case .user(let user): "user \(user)"
        case .network(let ip): ip.isIPv6 ? "\(ip)/64" : "\(ip)"
        case .unknown: "unknown clients"
        }
    }
}
