import HTTPWire
import Synchronization

/// One run of `pinproxy exec`: what the proxy knows of the requests that carry its token, and of those without one that come from
/// its processes (``RunInquiry``). Workers tell it what they refuse.
package final class Run: Sendable {
    /// What the token grants where `proxy.users` asks who comes: never more than whoever began the run had shown.
    package enum Grant: Sendable {
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
        /// Refused for want of a name and a password, with the number of times: its programs may still send them.
        var challenges: [RunRefusal: Int] = [:]
        var isOver = false
        /// What its end waits for: connections that were answered and on which TLS isn't settled, and those that it has just said are its.
        var steps = 0
        /// Names that the proxy is looking up for it.
        var lookUps = 0
    }

    /// Names that are looked up for one run at one time.
    package static let lookUpLimit = 32

    package let grant: Grant
    /// Of the process that began it, as the kernel sees it.
    package let owner: UInt32
    /// One that began later has a higher one.
    let number: UInt64
    package let questions = RunQuestions()
    private let changed: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameter changed: called on any thread when it is to be told something: when it is asked, and when something is refused for the
    ///   first time, at most ``RunRefusals/limit`` times.
    init(grant: Grant, owner: UInt32, number: UInt64, changed: @escaping @Sendable () -> Void) {
        self.grant = grant
        self.owner = owner
        self.number = number
        self.changed = changed
    }

    /// Whether a proxy that asks for these users lets the run's requests in.
    package func isLetIn(by users: UserVerifier) -> Bool {
        if state.withLock({ $0.isOver }) { return false }
        switch grant {
        case .nothing: return false
        case .user(let user): return users.knows(user)
        case .owner: return true
        }
    }

    func requested() { state.withLock { $0.requests += 1 } }

    /// A request of its has come within TLS that the client speaks with the proxy.
    func requestedInside() { state.withLock { $0.inside += 1 } }

    /// Nothing of it is let in by its token any more.
    func end() {
        state.withLock { $0.isOver = true }
        questions.end()
    }

    /// A CONNECT of its was answered, and TLS follows; or a connection turned out to be its.
    func stepBegan() { state.withLock { $0.steps += 1 } }

    /// For better or for worse. A client that doesn't trust the proxy's authority is gone by then.
    func stepEnded() { state.withLock { $0.steps -= 1 } }

    /// Asks whoever began it whether a process of the run holds that socket. For each yes ``stepEnded()`` is to be called.
    /// - Parameter answer: called once unless the question is given up, on any thread.
    /// - Returns: the question's number; nil: it is not asked.
    func ask(about socket: UInt64, _ answer: @escaping RunQuestions.Answer) -> UInt64? {
        let number = questions.ask(about: socket) { [self] isHeld in
            if isHeld { stepBegan() }
            answer(isHeld)
        }
        if number != nil { changed() }
        return number
    }

    /// - Returns: false: too many names are being looked up for it already.
    package func lookUpBegan() -> Bool {
        state.withLock { state in
            guard state.lookUps < Self.lookUpLimit else { return false }
            state.lookUps += 1
            return true
        }
    }

    package func lookUpEnded() { state.withLock { $0.lookUps -= 1 } }

    package var hasSteps: Bool { state.withLock { $0.steps > 0 } }

    // MARK: Refusals

    func refused(_ report: RefusalReport, asking authority: Authority?) {
        let (title, details) = (report.reasonPhrase, report.details)
        if details.hasPrefix(title) { return refused(details, asking: authority) }
        let prefix = report.host + ": "
        refused("\(title): \(details.hasPrefix(prefix) ? details.dropFirst(prefix.count) : details[...])", asking: authority)
    }

    /// - Parameter cause: may hold anything that a client or an origin sent.
    func refused(_ cause: String, asking authority: Authority?) {
        let refusal = RunRefusal(host: Self.name(of: authority), cause: FieldText.plain(cause, longest: 512))
        if state.withLock({ $0.refusals.add(refusal) }) { changed() }
    }

    private static func name(of authority: Authority?) -> String? {
        authority.map { authority in
            guard authority.port == 443 else { return "\(authority)" }
            return authority.isIPv6 ? "[\(authority.host)]" : authority.host
        }
    }

    /// A program of its was asked for a name and a password. Many send them then, and only then.
    func challenged(asking authority: Authority?) {
        let cause = "the proxy asks for a name and a password (proxy.users), and the program sent none"
        let refusal = RunRefusal(host: Self.name(of: authority), cause: cause)
        let isKept = state.withLock { state in
            guard state.challenges[refusal] != nil || state.challenges.count < RunRefusals.limit else { return false }
            state.challenges[refusal, default: 0] += 1
            return true
        }
        if !isKept { refused(cause, asking: authority) }
    }

    var hasChallenges: Bool { state.withLock { !$0.challenges.isEmpty } }

    /// One has sent the token.
    func answeredChallenge(asking authority: Authority?) {
        let host = Self.name(of: authority)
        state.withLock { state in state.challenges = state.challenges.filter { $0.key.host != host } }
    }

    /// Nothing more is sent: what was refused for want of a name and a password is told now.
    package func settleChallenges() {
        state.withLock { state in
            for (refusal, count) in state.challenges.sorted(by: { ($0.key.host ?? "") < ($1.key.host ?? "") }) {
                for _ in 0..<count { _ = state.refusals.add(refusal) }
            }
            state.challenges = [:]
        }
    }

    /// The refusals from this one on, in the order in which they first came.
    package func refusals(from index: Int) -> ArraySlice<RunRefusal> { state.withLock { $0.refusals.distinct[index...] } }

    /// Whether there is something to tell besides that many refusals.
    package func hasNews(after told: Int) -> Bool { state.withLock { $0.refusals.distinct.count > told } || questions.hasUnsent }

    package var summary: RunSummary {
        state.withLock {
            RunSummary(requests: $0.requests, inside: $0.inside, counts: $0.refusals.counts, unlisted: $0.refusals.unlisted)
        }
    }
}
