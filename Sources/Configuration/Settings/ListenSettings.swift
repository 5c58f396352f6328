package import Session

/// Where clients are accepted: `listen` of `proxy` in pinproxy.yaml.
package struct ListenSettings: Sendable, Equatable {
    /// None twice. Empty only if there are ``paths``, or ``takesInherited``.
    package var addresses: [ListenAddress]
    /// `systemd`: also on the sockets that it hands over under the port's name, `proxy` or `admin`
    /// (FileDescriptorName= of systemd.socket(5)).
    package var takesInherited: Bool
    /// Unix sockets, by absolute paths. None twice.
    package var paths: [String] = []
    /// Of the addresses those where a PROXY header comes before a client's first byte, and from whom it is taken.
    package var proxyProtocol: [ListenAddress: [AddressRange]] = [:]

    package init(addresses: [ListenAddress], takesInherited: Bool = false) {
        self.addresses = addresses
        self.takesInherited = takesInherited
    }

    /// Where a program can connect by itself.
    package var directAddresses: [ListenAddress] { addresses.filter { proxyProtocol[$0] == nil } }
}
