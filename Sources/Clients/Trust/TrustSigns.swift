/// A client as far as it can be told from others.
struct KnownClient: Hashable, Sendable {
    let claimant: Claimant
    /// Nil: unknown.
    let executable: String?
}

/// The clients that have shown that they trust the proxy's authority, by a request inside TLS with it.
struct TrustSigns: Sendable {
    /// Holders; the oldest makes room.
    private static let limit = 1024
    private static let executableLimit = 64

    private var trusting: [Claimant: Set<String?>] = [:]
    private var order: [Claimant] = []

    mutating func trusts(_ client: KnownClient) {
        if trusting[client.claimant] == nil {
            if order.count >= Self.limit { trusting[order.removeFirst()] = nil }
            order.append(client.claimant)
        }
        let isFull = trusting[client.claimant, default: []].count >= Self.executableLimit
        trusting[client.claimant, default: []].insert(isFull ? nil : client.executable)
    }

    /// Whether it, or one that may be it, trusts the authority.
    func includes(_ client: KnownClient) -> Bool {
        guard let known = trusting[client.claimant] else { return false }
        return client.executable == nil || known.contains(client.executable) || known.contains(nil)
    }
}
