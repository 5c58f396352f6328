package import PinproxyEventLoop
import Synchronization

/// The sockets that accept clients here. Connecting to one would loop until no descriptors are left.
package final class OwnListeners: Sendable {
    private let addresses: Mutex<[SocketAddress]>

    package init(_ addresses: [SocketAddress] = []) {
        self.addresses = Mutex(addresses)
    }

    /// Call it before the first client is accepted.
    package func replace(with fresh: [SocketAddress]) {
        addresses.withLock { $0 = fresh }
    }

    func use(port: UInt16) -> Bool { addresses.withLock { $0 }.contains { $0.port == port } }

    /// Whether a connection to `address` would arrive here, in any spelling, on any address of the machine.
    func contains(_ address: SocketAddress) -> Bool {
        let listeners = addresses.withLock { $0 }.filter { $0.port == address.port }
        guard !listeners.isEmpty else { return false }
        let ip = address.ip.canonical
        return listeners.contains { listener in
            if listener.ip.isUnspecified { return listener.ip.isIPv6 == ip.isIPv6 && Socket.isLocal(ip) }
            return listener.ip.canonical == ip
        }
    }
}
