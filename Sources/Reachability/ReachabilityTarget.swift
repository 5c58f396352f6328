package import PinproxyEventLoop

/// A target to reach.
public struct ReachabilityTarget: Sendable, Hashable, CustomStringConvertible {
    package enum Kind: Sendable, Hashable {
        case any
        case address(IPAddress)
        /// In lower case.
        case host(String)
    }

    package let kind: Kind

    package init(_ kind: Kind) {
        self.kind = kind
    }

    /// The machine as a whole: its route to the internet, by IPv4 or IPv6.
    public static let any = ReachabilityTarget(.any)

    /// A host, by its name or its address. The status of a name follows from its addresses.
    public static func host(_ name: String) -> ReachabilityTarget {
        ReachabilityTarget(address: name) ?? ReachabilityTarget(.host(name.lowercased()))
    }

    /// An address: dotted quads, or IPv6 as in RFC 4291 without brackets and zone. Nil if it is neither.
    public init?(address text: String) {
        guard let address = IPAddress(text) else { return nil }
        self.init(.address(address.unmapped))
    }

    /// `any`, the address, or the name.
    public var description: String {
        switch kind {
        case .any: "any"
        case .address(let address): "\(address)"
        case .host(let name): name
        }
    }
}

extension IPAddress {
    /// 169.254.0.0/16 (RFC 3927) or fe80::/10.
    var isLinkLocal: Bool {
        let bytes = bytes
        return isIPv6 ? bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80 : bytes[0] == 169 && bytes[1] == 254
    }
}
