// Isolation: a private network for a command, where only the proxy can be reached, and the door to it.
//
// The network is a network namespace (network_namespaces(7)) with nothing but its loopback. Sockets belong to the
// namespace that they were made in. The command's process makes the listening ones there before it becomes the command.
// A ``Door`` keeps them outside, and forwards the connections that they accept to the proxy.

internal import Glibc
package import PinproxyEventLoop

package struct IsolatedNetwork: Sendable {
    /// The proxy's address. A door listens at the same address inside, so that the proxy's URL is the same.
    package let proxy: SocketAddress
    /// Connections to ports 443 and 80 of any address reach the proxy too, and names are answered.
    package let isTransparent: Bool

    package init(proxy: SocketAddress, isTransparent: Bool) {
        self.proxy = proxy
        self.isTransparent = isTransparent
    }

    static let (secure, plain, names): (UInt16, UInt16, UInt16) = (443, 80, 53)

    /// Sets it up in this process's private namespace.
    /// - Returns: the sockets that listen in there, close-on-exec. The caller owns them.
    func open() throws(IsolationError) -> [CInt] {
        do throws(SystemError) {
            let link = try LoopbackLink()
            try link.start()
            if !proxy.ip.isLoopback { try link.add(proxy.ip) }
            if isTransparent { try link.takeAllAddresses() }
            return try sockets()
        } catch {
            let hint = NamespaceRefusal.hint(ProcFiles.number).map { "; \($0)" } ?? ""
            throw IsolationError("the command's private network can't be set up: \(error)\(hint)")
        }
    }

    private func sockets() throws(SystemError) -> [CInt] {
        var sockets: [CInt] = []
        var places: [SocketAddress] = []
        if isTransparent {
            for port in [Self.secure, Self.plain, Self.names] { places += everywhere(port) }
        }
        if !places.contains(where: { $0.port == proxy.port && $0.ip.isIPv6 == proxy.ip.isIPv6 }) {
            places.append(proxy)
        }
        for place in places {
            try add(to: &sockets, isOptional: place.ip.isIPv6 && place != proxy) { () throws(SystemError) in
                try Socket.listen(on: place, backlog: 4096, reusePort: false)
            }
        }
        guard isTransparent else { return sockets }
        for place in everywhere(Self.names) {
            try add(to: &sockets, isOptional: place.ip.isIPv6) { () throws(SystemError) in
                try DatagramSocket.bind(on: place)
            }
        }
        return sockets
    }

    private func everywhere(_ port: UInt16) -> [SocketAddress] {
        ["0.0.0.0", "::"].compactMap { IPAddress($0) }.map { SocketAddress(ip: $0, port: port) }
    }

    /// - Parameter isOptional: failure is ignored: a machine may have no IPv6.
    private func add(
        to sockets: inout [CInt], isOptional: Bool, _ open: () throws(SystemError) -> Descriptor
    ) throws(SystemError) {
        do throws(SystemError) {
            sockets.append(try open().release())
        } catch {
            if !isOptional { throw error }
        }
    }

    /// The destination of a connection in there, to that address.
    func way(to address: SocketAddress) -> Way {
        if address == proxy || !isTransparent { return .proxy }
        return switch address.port {
        case Self.secure: .tls
        case Self.plain: .http
        case Self.names: .names
        default: .proxy
        }
    }

    enum Way {
        /// The client uses the proxy explicitly.
        case proxy
        case tls, http, names
    }
}
