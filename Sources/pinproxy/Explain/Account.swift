internal import Clients
internal import Configuration
internal import Security
internal import Session
internal import TLS

/// What a policy did for a host and why: what `pinproxy explain` prints.
struct Account {
    /// How it came out.
    enum Ending {
        case denied
        /// The entry is for other clients.
        case notAdmitted(Rehearsal.Answer)
        /// By a connection.
        case tried(Rehearsal.Ending)
        /// By a chain on disk; nil where the action looks at none.
        case given(Explanation?, file: String)
        /// Neither was asked for.
        case untried
    }

    let decision: Rehearsal.Decision
    let others: [HostEntry]
    let rules: RuleAccount
    let now: UnixTime
    /// The clock is not the machine's.
    let isClockSet: Bool
    /// The file of the chain, where it isn't the host's.
    let file: String?
    let connection: Rehearsal.Connection?
    let explanation: Explanation?
    /// What a client is told; nil if the host is let through.
    let answer: Rehearsal.Answer?
    /// A connection, a chain or the policy said whether the host is let through.
    let isTried: Bool

    init(
        _ decision: Rehearsal.Decision, _ ending: Ending, others: [HostEntry], rules: RuleAccount, anchors: TrustAnchors,
        at now: UnixTime, isClockSet: Bool
    ) {
        self.decision = decision
        self.others = others
        self.rules = rules
        self.now = now
        self.isClockSet = isClockSet
        isTried = if case .untried = ending { false } else { true }
        switch ending {
        case .denied:
            (file, connection, explanation, answer) = (nil, nil, nil, decision.denial)
        case .notAdmitted(let objection):
            (file, connection, explanation, answer) = (nil, nil, nil, objection)
        case .given(let given, let file):
            (self.file, connection, explanation) = (file, nil, given)
            answer =
                decision.action == .deny
                ? decision.denial
                : given.flatMap {
                    $0.verdict.isAccepted ? nil : Rehearsal.Answer(.refused($0.verdict), for: decision.host)
                }
        case .untried: (file, connection, explanation, answer) = (nil, nil, nil, nil)
        case .tried(.success(let connection)):
            (file, self.connection, answer) = (nil, connection, nil)
            explanation = connection.verdict.flatMap {
                decision.explain(
                    $0.presented, evidence: $0.evidence, version: connection.version, anchors: anchors, at: now)
            }
        case .tried(.failure(let failure)):
            (file, connection) = (nil, nil)
            answer = Rehearsal.Answer(failure, for: decision.host, entry: decision.entry)
            if case .refused(let verdict) = failure {
                explanation = decision.explain(verdict.presented, evidence: verdict.evidence, anchors: anchors, at: now)
            } else {
                explanation = nil
            }
        }
    }

    var isLetThrough: Bool { answer == nil }

    /// The chain that was verified, else the one that was shown.
    var chain: (facts: [CertificateFacts], isVerified: Bool) {
        guard let verdict = explanation?.verdict else { return ([], false) }
        return verdict.chain.map { (CertificateFacts.of($0, at: now), true) }
            ?? (CertificateFacts.of(verdict.presented, at: now), false)
    }
}

extension Rehearsal.Decision {
    /// What the policy makes of a chain; nil where the action looks at none.
    /// - Parameters:
    ///   - evidence: what the server brought beside its chain; nil where no server was asked.
    ///   - version: what was spoken with it, where a connection was made.
    func explain(
        _ presented: PresentedChain, evidence: PeerEvidence? = nil, version: TLSVersion? = nil, anchors: TrustAnchors,
        at now: UnixTime
    ) -> Explanation? {
        guard action == .intercept || action == .verifyTunnel else { return nil }
        return policy.explain(
            presented, evidence: evidence, version: version, host: host.serverName, anchors: anchors, at: now)
    }
}
