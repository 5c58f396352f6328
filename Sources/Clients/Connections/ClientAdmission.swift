import Configuration
import EventLoop
import HTTPWire
import LocalPeers
import Session

/// Which clients the proxy serves at all, before anybody looks at what they ask for.
extension ClientConnection {
    /// Whether the configuration in force lets this client in, whatever it shows.
    var isAllowed: Bool {
        if judged !== worker.snapshot {
            judged = worker.snapshot
            wasAllowed = isAddressAllowed && isOwner
        }
        return wasAllowed
    }

    /// Whether it may stay after a reload.
    func isStillAllowed(_ identity: ClientIdentity) -> Bool {
        isAllowed || worker.snapshot.proxy.owner != nil && isAddressAllowed && identity.run != nil
    }

    /// Why the configuration in force refuses a client that an earlier one let in; nil if it doesn't.
    func objectionAfterReload(to identity: ClientIdentity) -> ProxyError? {
        guard isStillAllowed(identity) else { return isAddressAllowed ? .clientOfAnotherUser : addressNotAllowed }
        guard let users = worker.users, !identity.isLetIn(by: users) else { return nil }
        if identity.run != nil { return .runWithoutUser }
        return identity.user == nil ? .credentialsMissing : .credentialsWrong
    }

    /// Who may connect to a Unix socket, its file's permissions say. A door is for those who may use a port of the loopback.
    fileprivate var isAddressAllowed: Bool {
        let ranges = worker.snapshot.proxy.allowClients
        guard let address = source.address else { return place == .thisMachine || Self.loopback.contains { ip in ranges.contains { $0.contains(ip) } } }
        return ranges.contains { $0.contains(address.ip.bytes) }
    }

    private static let loopback: [[UInt8]] = [[127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1]]

    /// By the kernel's word. A client that the kernel doesn't know is not the owner.
    private var isOwner: Bool {
        guard let owner = worker.snapshot.proxy.owner else { return true }
        return peer.socket?.user == owner
    }

    fileprivate var addressNotAllowed: ProxyError {
        .clientNotAllowed(source.address?.ip.description ?? source.description)
    }
}

extension ClientRequest {
    /// Whether the request in hand shows that the client is one of the owner's all the same: a program of a run may be another user's.
    var showsOwnersToken: Bool {
        guard worker.snapshot.proxy.owner != nil, connection.isAddressAllowed else { return false }
        return shownToken.flatMap { worker.shared.runs.run(with: $0) } != nil
    }

    /// Why the request in hand isn't served.
    var objectionToClient: ProxyError {
        guard connection.isAddressAllowed else { return connection.addressNotAllowed }
        return shownToken == nil ? .clientOfAnotherUser : .runUnknown
    }

    private var shownToken: RunToken? {
        server.readRequest { Credentials(in: $0.head, $0.bytes) }.flatMap { RunToken($0) }
    }
}
