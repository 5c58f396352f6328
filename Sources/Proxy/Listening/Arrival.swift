import EventLoop
import LocalPeers
import Session

/// What is known of a client when its connection is accepted.
struct Arrival: Sendable {
    /// The PROXY header of a listener whose clients come by way of a load balancer.
    enum Header: Sendable {
        /// None is spoken: a client's own bytes come first.
        case none
        /// It comes first, and says where the client is.
        case awaited
        /// It would come from somebody whose word doesn't count (`proxy_protocol`).
        case untrusted
    }

    let source: Endpoint
    let peer: ClientPeer
    let header: Header
    /// It comes by a ``DoorSocket``.
    var isByDoor = false

    init(from source: Endpoint, peer: ClientPeer, header: Header = .none) {
        self.source = source
        self.peer = peer
        self.header = header
    }
}

extension Arrival {
    /// The same, of the client that a header names. Whatever address that is: nobody has it on this machine.
    func behind(_ header: ProxyHeader) -> Arrival {
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

/// Asks who comes, at the moment when a connection is accepted. Belongs to the acceptor's thread.
struct ArrivalDesk {
    /// Nil: the kernel can't be asked.
    private let sockets: SocketTable?

    init() { sockets = try? SocketTable() }

    /// Whether those who come to that listener can be known.
    func knowsConnections(to listener: CInt) -> Bool { sockets?.knowsConnections(to: listener) ?? false }

    /// - Parameter isKnown: ``knowsConnections(to:)`` of the listener that has accepted the socket.
    func arrival(of socket: CInt, from source: Endpoint, isKnown: Bool) -> Arrival {
        guard let sockets else {
            return Arrival(from: source, peer: ClientPeer(nil, why: "the kernel can't be asked about its sockets (sock_diag)"))
        }
        let found: LocalSocket?
        let why: String
        switch source {
        case .unix:
            found = sockets.peer(ofUnix: socket)
            why = "the kernel doesn't say who connected"
        case .network(let address):
            found = isKnown ? sockets.peer(of: socket, from: address) : nil
            why = "its connection doesn't come over loopback, or it has closed it"
        }
        return Arrival(from: source, peer: ClientPeer(found, why: why))
    }
}
