package import EventLoop

/// On which side of the border of the internet an address is. What listens inside often counts on nobody outside being
/// able to send a client there.
package enum AddressScope: Sendable, Hashable {
    /// This machine, or a network that the internet doesn't lead to: loopback, private, link-local, shared (CGNAT), and
    /// where clouds serve credentials.
    case inside
    case outside
}

extension IPAddress {
    /// Inside if any of its readings is.
    package var scope: AddressScope { AddressClass.classes(of: self).isEmpty ? .outside : .inside }
}

extension [IPAddress] {
    /// Of a host that has these: inside if any is. Nil: it has none.
    var scope: AddressScope? { isEmpty ? nil : contains { $0.scope == .inside } ? .inside : .outside }
}
