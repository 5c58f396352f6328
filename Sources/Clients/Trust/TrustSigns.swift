import EventLoop

/// A client as far as it can be distinguished from others.
struct KnownClient: Hashable, Sendable {
    let claimant: Claimant
    /// Nil: unknown.
    let executable: String?
}

/// The clients that have shown that they trust the proxy's authority, by a request inside TLS with it.
struct TrustSigns: Sendable {
    private struct Shown {
        var executables: Set<String> = []
        var latest: MonotonicTime
        /// By a client of unknown executable, or by too many to distinguish.
        var isAnybodys = false
    }

    /// Claimants; the oldest makes room.
    private static let limit = 1024
    private static let executableLimit = 64

    private var shown: [Claimant: Shown] = [:]
    private var order: [Claimant] = []

    mutating func trusts(_ client: KnownClient, at now: MonotonicTime) {
        if shown[client.claimant] == nil {
            if order.count >= Self.limit { shown[order.removeFirst()] = nil }
            order.append(client.claimant)
        }
        var own = shown[client.claimant] ?? Shown(latest: now)
        own.latest = now
        if let executable = client.executable, own.executables.count < Self.executableLimit {
            own.executables.insert(executable)
        } else {
            own.isAnybodys = true
        }
        shown[client.claimant] = own
    }

    /// Whether it has shown trust. One of unknown executable may be any of its claimant's.
    /// - Parameter instant: between clients that can't be distinguished, only trust shown since then counts; nil: any.
    func includes(_ client: KnownClient, since instant: MonotonicTime?) -> Bool {
        guard let own = shown[client.claimant] else { return false }
        if let executable = client.executable, own.executables.contains(executable) { return true }
        guard client.executable == nil || own.isAnybodys else { return false }
        return instant.map { $0 <= own.latest } ?? true
    }
}
