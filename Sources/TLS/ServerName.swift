import PinproxyAddresses

package enum ServerName: Sendable, Hashable, CustomStringConvertible {
    /// A host name: lower-case A-labels, no trailing dot.
    case dns(String)
    /// An IPv4 or IPv6 address in text, without brackets.
    case ip(String)

    /// A host of an authority: an address, else a DNS name in lower case without its trailing dot.
    package init(host: String) {
        if IPAddress(host) != nil {
            self = .ip(host)
        } else {
            self = .dns(host.hasSuffix(".") ? String(host.lowercased().dropLast()) : host.lowercased())
        }
    }

    package var description: String {
        switch self {
        case .dns(let name), .ip(let name): name
        }
    }
}
