import Clients
import EventLoop
import LocalPeers

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
