/// The addresses of a name, and where they come from.
package struct AddressAnswer: Sendable, Hashable {
    package let addresses: [IPAddress]
    package let source: NameSource

    package init(_ addresses: [IPAddress], from source: NameSource) {
        self.addresses = addresses
        self.source = source
    }
}

/// The source of a name's addresses.
package struct NameSource: Sendable, Hashable, CustomStringConvertible {
    package enum Origin: Sendable, Hashable {
        /// The name is an address.
        case literal
        /// Loopback without a query (RFC 6761 section 6.3).
        case localhost
        case hostsFile
        /// DNS; the server that answered, if known.
        case server(SocketAddress?)
        /// An address that an earlier step chose.
        case given
    }

    package let origin: Origin
    /// The answer was still in the proxy's cache.
    package let isCached: Bool

    package init(_ origin: Origin, isCached: Bool = false) {
        self.origin = origin
        self.isCached = isCached
    }

    var cached: NameSource { NameSource(origin, isCached: true) }

    /// `DNS server 192.0.2.53:53`, `cache (hosts file)`
    package var description: String {
        let text =
            switch origin {
            case .literal: "literal address"
            case .localhost: "localhost, without a query"
            case .hostsFile: "hosts file"
            case .server(let address): address.map { "DNS server \($0)" } ?? "DNS"
            case .given: "address of the judged connection"
            }
        return isCached ? "cache (\(text))" : text
    }
}
