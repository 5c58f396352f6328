import PinproxyEventLoop
import PinproxyHTTPWire
import Synchronization

/// One run of `pinproxy exec`: its requests, by token or by process (``RunInquiry``), and their refusals.
package final class Run: Sendable {
    /// The access that the token grants under `proxy.users`: never more than its starter had.
    package enum Grant: Sendable {
        /// Nothing beyond what everybody may do.
        case nothing
        /// Begun with this user's credentials.
        case user(KnownUser)
        /// Begun by the proxy's own user or root, who could change `proxy.users` anyway.
        case owner
    }

    private struct State {
        var requests = 0
        var inside = 0
        var refusals = RunRefusals()
        /// Counts of requests without credentials: programs may still send them.
        var challenges: [RunRefusal: Int] = [:]
        /// Programs that trust the proxy's authority.
        var signs = TrustSigns()
        /// Clients that seem not to, unless they send a request after all.
        var departures: [(client: KnownClient, refusal: RunRefusal)] = []
        var isOver = false
        /// Its end waits for these: unfinished TLS handshakes, and connections just identified as the run's.
        var steps = 0
        var lookUps = 0
    }

    package static let lookUpLimit = 32

    package let grant: Grant
    /// The user of the process that began it, by the kernel's data.
    package let owner: UInt32
    let number: UInt64
    package let questions = RunQuestions()
    private let changed: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameter changed: called on any thread for a new question or a new refusal, at most ``RunRefusals/limit`` of
    ///   these.
    init(grant: Grant, owner: UInt32, number: UInt64, changed: @escaping @Sendable () -> Void) {
        self.grant = grant
        self.owner = owner
        self.number = number
        self.changed = changed
    }

    /// Whether a proxy with these users admits the run's requests.
    package func isLetIn(by users: UserVerifier) -> Bool {
        if state.withLock({ $0.isOver }) { return false }
        switch grant {
        case .nothing: return false
        case .user(let user): return users.knows(user)
        case .owner: return true
        }
    }

    func requested() { state.withLock { $0.requests += 1 } }

    /// Inside the client's TLS with the proxy.
    func requestedInside() { state.withLock { $0.inside += 1 } }

    func trusts(_ client: KnownClient, at now: MonotonicTime) { state.withLock { $0.signs.trusts(client, at: now) } }

    func left(_ departure: ClientDeparture) {
        let refusal = RunRefusal(host: Self.name(of: departure.authority), cause: ClientDeparture.cause)
        state.withLock { state in
            if state.departures.count < Self.departureLimit { state.departures.append((departure.client, refusal)) }
        }
    }

    private static let departureLimit = 256

    /// Its token grants nothing more.
    func end() {
        state.withLock { $0.isOver = true }
        questions.end()
    }

    /// TLS follows a CONNECT; or a connection was identified as the run's.
    func stepBegan() { state.withLock { $0.steps += 1 } }

    func stepEnded() { state.withLock { $0.steps -= 1 } }

    /// Asks its starter whether a process of the run holds that socket. For each yes call ``stepEnded()``.
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

    /// - Returns: false: too many are in flight.
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

    /// - Parameter options: for `pinproxy explain`, where rules decided (``RunRefusal/options``).
    func refused(_ report: RefusalReport, asking authority: Authority?, options: [String]? = nil) {
        let (title, details) = (report.reasonPhrase, report.details)
        let prefix = report.host + ": "
        let cause =
            if details.hasPrefix(title) {
                details
            } else if title.hasSuffix(details) {
                title
            } else {
                "\(title): \(details.hasPrefix(prefix) ? details.dropFirst(prefix.count) : details[...])"
            }
        refused(cause, asking: authority, options: options)
    }

    /// - Parameter cause: may hold bytes of clients and origins.
    func refused(_ cause: String, asking authority: Authority?, options: [String]? = nil) {
        let isShort = (options ?? []).reduce(0) { $0 + $1.utf8.count } <= 512
        let refusal = RunRefusal(
            host: Self.name(of: authority), cause: FieldText.plain(cause, longest: 512),
            options: isShort ? options : nil)
        if state.withLock({ $0.refusals.add(refusal) }) { changed() }
    }

    private static func name(of authority: Authority?) -> String? {
        authority.map { authority in
            guard authority.port == 443 else { return "\(authority)" }
            return authority.isIPv6 ? "[\(authority.host)]" : authority.host
        }
    }

    /// A program was asked for credentials. Many send them only then.
    func challenged(asking authority: Authority?) {
        let cause = "the proxy requires a user name and a password (proxy.users), and the program sent none"
        let refusal = RunRefusal(host: Self.name(of: authority), cause: cause)
        let isKept = state.withLock { state in
            guard state.challenges[refusal] != nil || state.challenges.count < RunRefusals.limit else { return false }
            state.challenges[refusal, default: 0] += 1
            return true
        }
        if !isKept { refused(cause, asking: authority) }
    }

    var hasChallenges: Bool { state.withLock { !$0.challenges.isEmpty } }

    /// A program has sent the token.
    func answeredChallenge(asking authority: Authority?) {
        let host = Self.name(of: authority)
        state.withLock { state in state.challenges = state.challenges.filter { $0.key.host != host } }
    }

    /// Unanswered challenges, and programs that never asked inside TLS, count as refusals now.
    package func settle() {
        state.withLock { state in
            for (client, refusal) in state.departures where !state.signs.includes(client, since: nil) {
                _ = state.refusals.add(refusal)
            }
            state.departures = []
            for (refusal, count) in state.challenges.sorted(by: { ($0.key.host ?? "") < ($1.key.host ?? "") }) {
                for _ in 0..<count { _ = state.refusals.add(refusal) }
            }
            state.challenges = [:]
        }
    }

    /// The refusals from this one on, in order of their first occurrence.
    package func refusals(from index: Int) -> ArraySlice<RunRefusal> {
        state.withLock { $0.refusals.distinct[index...] }
    }

    /// Whether there is more than these refusals.
    package func hasNews(after told: Int) -> Bool {
        state.withLock { $0.refusals.distinct.count > told } || questions.hasUnsent
    }

    package var summary: RunSummary {
        state.withLock {
            RunSummary(
                requests: $0.requests, inside: $0.inside, counts: $0.refusals.counts, unlisted: $0.refusals.unlisted)
        }
    }
}
