package import EventLoop
import Session

/// What is known of a client when its connection is accepted.
package struct Arrival: Sendable {
    /// The PROXY header of a listener whose clients come by way of a load balancer.
    package enum Header: Sendable {
        /// None is spoken: a client's own bytes come first.
        case none
        /// It comes first, and says where the client is.
        case awaited
        /// It would come from somebody whose word doesn't count (`proxy_protocol`).
        case untrusted
    }

    package let source: Endpoint
    package let peer: ClientPeer
    package let header: Header
    /// It comes by a ``DoorSocket``.
    package var isByDoor = false

    package init(from source: Endpoint, peer: ClientPeer, header: Header = .none) {
        self.source = source
        self.peer = peer
        self.header = header
    }
}

extension Arrival {
    /// The same, of the client that a header names. Whatever address that is: nobody has it on this machine.
    package func behind(_ header: ProxyHeader) -> Arrival {
        guard case .address(let address) = header.source else { return Arrival(from: source, peer: peer, header: self.header) }
        return Arrival(from: .network(address), peer: peer, header: self.header)
    }

    /// As far as it matters to where it may be led. A load balancer's word, for itself or others, brings nobody near, and a
    /// command's own network is not this machine's.
    var place: ClientPlace {
        guard case .none = header, !isByDoor else { return .elsewhere }
        return source.address.map { ClientPlace(of: $0.ip) } ?? .thisMachine
    }
}
