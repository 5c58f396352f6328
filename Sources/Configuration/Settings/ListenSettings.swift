/// Where clients are accepted: a `listen` key of pinproxy.yaml.
package struct ListenSettings: Sendable, Equatable {
    /// None twice; empty only if ``takesInherited``.
    package var addresses: [ListenAddress]
    /// `systemd`: also on the sockets that it hands over under the port's name, `proxy` or `admin`
    /// (FileDescriptorName= of systemd.socket(5)).
    package var takesInherited: Bool

    package init(addresses: [ListenAddress], takesInherited: Bool = false) {
        self.addresses = addresses
        self.takesInherited = takesInherited
    }
}
