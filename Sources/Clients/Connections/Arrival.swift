package import PinproxyEventLoop
import PinproxySession

/// Facts about a client when its connection is accepted.
package struct Arrival: Sendable {
    /// The PROXY header that a load balancer sends first.
    package enum Header: Sendable {
        /// Not used: the client's own bytes come first.
        case none
        /// It comes first, and gives the client's address.
        case awaited
        /// The sender isn't trusted (`proxy_protocol`).
        case untrusted
    }

    package let source: Endpoint
    package let peer: ClientPeer
    package let header: Header
    /// Over a ``DoorSocket``.
    package var isByDoor = false

    package init(from source: Endpoint, peer: ClientPeer, header: Header = .none) {
        self.source = source
        self.peer = peer
        self.header = header
    }
}

extension Arrival {
    /// The client that a header names. Its peer is unknown to this machine.
    package func behind(_ header: ProxyHeader) -> Arrival {
        guard case .address(let address) = header.source else {
            return Arrival(from: source, peer: peer, header: self.header)
        }
        return Arrival(from: .network(address), peer: peer, header: self.header)
    }

    /// For address checks. Load balancers and command networks (``DoorSocket``) never count as this machine.
    var place: ClientPlace {
        guard case .none = header, !isByDoor else { return .elsewhere }
        return source.address.map { ClientPlace(of: $0.ip) } ?? .thisMachine
    }
}
