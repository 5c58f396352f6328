import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyLocalPeers
import PinproxySession

/// Decides which clients the proxy serves at all, whatever they request.
extension ClientConnection {
    /// Whether the configuration in force allows the client's address and user.
    var isAllowed: Bool {
        if judged !== worker.snapshot {
            judged = worker.snapshot
            wasAllowed = isAddressAllowed && isOwner
        }
        return wasAllowed
    }

    func isStillAllowed(_ identity: ClientIdentity) -> Bool {
        isAllowed || worker.snapshot.proxy.owner != nil && isAddressAllowed && identity.run != nil
    }

    /// Nil: the configuration in force still allows the client.
    func objectionAfterReload(to identity: ClientIdentity) -> ProxyError? {
        guard isStillAllowed(identity) else { return isAddressAllowed ? .clientOfAnotherUser : addressNotAllowed }
        guard let users = worker.users, !identity.isLetIn(by: users) else { return nil }
        if identity.run != nil { return .runWithoutUser }
        return identity.user == nil ? .credentialsMissing : .credentialsWrong
    }

    /// File permissions guard a Unix socket. A door is for those who may use a loopback port.
    fileprivate var isAddressAllowed: Bool {
        let ranges = worker.snapshot.proxy.allowClients
        guard let address = source.address else {
            return place == .thisMachine || Self.loopback.contains { ip in ranges.contains { $0.contains(ip) } }
        }
        return ranges.contains { $0.contains(address.ip.bytes) }
    }

    private static let loopback: [[UInt8]] = [[127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1]]

    /// Decided by the kernel's data: an unknown client is not the owner.
    private var isOwner: Bool {
        guard let owner = worker.snapshot.proxy.owner else { return true }
        return peer.socket?.user == owner
    }

    fileprivate var addressNotAllowed: ProxyError {
        .clientNotAllowed(source.address?.ip.description ?? source.description)
    }
}

extension ClientRequest {
    /// Whether the request has the token of a run: its program may be another user's.
    var showsOwnersToken: Bool {
        guard worker.snapshot.proxy.owner != nil, connection.isAddressAllowed else { return false }
        return shownToken.flatMap { worker.shared.runs.run(with: $0) } != nil
    }

    var objectionToClient: ProxyError {
        guard connection.isAddressAllowed else { return connection.addressNotAllowed }
        return shownToken == nil ? .clientOfAnotherUser : .runUnknown
    }

    private var shownToken: RunToken? {
        server.readRequest { Credentials(in: $0.head, $0.bytes) }.flatMap { RunToken($0) }
    }
}
