import EventLoop

/// The ports that this program opens, by the names that `listen` and systemd's units have for them.
enum ListenPort: String {
    case proxy, admin
}

/// A socket that a supervisor hands over, with the name that it has there: of a socket unit (FileDescriptorName= of
/// systemd.socket(5)) the port's, of one that the process before has stored the ``ListeningSocket/name``.
package struct InheritedSocket: Sendable {
    let raw: CInt
    let name: String
    /// Where it listens; nil if it is no TCP socket that does.
    let address: SocketAddress?

    /// - Parameters:
    ///   - raw: taken over.
    ///   - isListener: whether it is a TCP socket that listens.
    package init(raw: CInt, name: String, isListener: Bool) {
        self.raw = raw
        self.name = name
        address = isListener ? Socket.localAddress(raw) : nil
    }

    /// Whose it is; nil: its name says nothing of that.
    private var owner: ListenPort? { ListenPort(rawValue: String(name.prefix { $0 != " " })) }

    /// Whether `listen: systemd` of the port means it.
    func isNamed(for port: ListenPort) -> Bool { address != nil && name == port.rawValue }

    /// Whether it can be had for an address that the port's `listen` names.
    func fits(_ wanted: SocketAddress, of port: ListenPort) -> Bool {
        address == wanted && (owner == nil || owner == port)
    }
}
