package import PinproxyEventLoop

/// Internal or of the internet. Internal services often assume that no outsider can direct a client to them.
package enum AddressScope: Sendable, Hashable {
    /// Loopback, private, link-local, shared (CGNAT), and the metadata services of clouds.
    case inside
    case outside
}

extension IPAddress {
    package var scope: AddressScope { AddressClass.classes(of: self).isEmpty ? .outside : .inside }
}

extension [IPAddress] {
    /// The scope of a host with these addresses: inside if any is; nil without addresses.
    var scope: AddressScope? { isEmpty ? nil : contains { $0.scope == .inside } ? .inside : .outside }
}
