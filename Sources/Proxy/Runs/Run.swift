import HTTPWire
import Synchronization

/// One run of `pinproxy exec`: what the proxy knows of the requests that carry its token. Workers tell it what they refuse.
final class Run: Sendable {
    /// What the token lets its bearer do where `proxy.users` asks who comes. It never grants more than whoever began the run had
    /// shown by then.
    enum Grant: Sendable {
        /// Requests are known to be of the run, and let in only where everybody is.
        case nothing
        /// Begun with the name and the password of this user.
        case user(KnownUser)
        /// Begun by the proxy's own user or root, by the kernel's word. They could change `proxy.users` as well.
        case owner
    }

    private struct State {
        var requests = 0
        var inside = 0
        var refusals = RunRefusals()
        var isOver = false
        /// Connections that were answered, and on which TLS isn't settled.
        var handshakes = 0
        /// Names that the proxy is looking up for it.
        var lookUps = 0
    }

    /// Names that are looked up for one run at one time.
    static let lookUpLimit = 32

    let grant: Grant
    /// Of the process that began it, as the kernel sees it.
    let owner: UInt32
    private let changed: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameter changed: called when something is refused for the first time, on any thread; at most
    ///   ``RunRefusals/limit`` times.
    init(grant: Grant, owner: UInt32, changed: @escaping @Sendable () -> Void) {
        self.grant = grant
        self.owner = owner
        self.changed = changed
    }

    /// Whether a proxy that asks for these users lets the run's requests in.
    func isLetIn(by users: UserVerifier) -> Bool {
        if state.withLock({ $0.isOver }) { return false }
        switch grant {
        case .nothing: return false
        case .user(let user): return users.knows(user)
        case .owner: return true
        }
    }

    /// A request of its has come.
    func requested() { state.withLock { $0.requests += 1 } }

    /// A request of its has come within TLS that the client speaks with the proxy.
    func requestedInside() { state.withLock { $0.inside += 1 } }

    /// Nothing of it is let in by its token any more.
    func end() { state.withLock { $0.isOver = true } }

    /// A CONNECT of its was answered, and TLS follows.
    func handshakeBegan() { state.withLock { $0.handshakes += 1 } }

    /// For better or for worse. A client that doesn't trust the proxy's authority is gone by then.
    func handshakeEnded() { state.withLock { $0.handshakes -= 1 } }

    /// A name is to be looked up for it.
    /// - Returns: false: too many are already.
    func lookUpBegan() -> Bool {
        state.withLock { state in
            guard state.lookUps < Self.lookUpLimit else { return false }
            state.lookUps += 1
            return true
        }
    }

    func lookUpEnded() { state.withLock { $0.lookUps -= 1 } }

    var hasHandshakes: Bool { state.withLock { $0.handshakes > 0 } }

    // MARK: Refusals

    func refused(_ report: RefusalReport, asking authority: Authority?) {
        let (title, details) = (report.reasonPhrase, report.details)
        if details.hasPrefix(title) { return refused(details, asking: authority) }
        let prefix = report.host + ": "
        refused("\(title): \(details.hasPrefix(prefix) ? details.dropFirst(prefix.count) : details[...])", asking: authority)
    }

    /// - Parameter cause: may hold anything that a client or an origin sent.
    func refused(_ cause: String, asking authority: Authority?) {
        let host = authority.map { authority in
            guard authority.port == 443 else { return "\(authority)" }
            return authority.isIPv6 ? "[\(authority.host)]" : authority.host
        }
        let refusal = RunRefusal(host: host, cause: FieldText.plain(cause, longest: 512))
        if state.withLock({ $0.refusals.add(refusal) }) { changed() }
    }

    /// The refusals from this one on, in the order in which they first came.
    func refusals(from index: Int) -> ArraySlice<RunRefusal> { state.withLock { $0.refusals.distinct[index...] } }

    var summary: RunSummary {
        state.withLock {
            RunSummary(requests: $0.requests, inside: $0.inside, counts: $0.refusals.counts, unlisted: $0.refusals.unlisted)
        }
    }
}
