internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySession
internal import PinproxyTLS

/// A policy's decision about a host, over a live connection.
struct HostTrial {
    enum Outcome {
        case accepted
        /// With what a client would get.
        case refused(Rehearsal.Answer)
        /// The connection failed, so the policy wasn't asked. Its demands on TLS may be the reason (`min_tls`).
        case failed(cause: String, isOverTLS: Bool)
    }

    let host: Rehearsal.Host
    let entry: HostEntry?
    /// Nil: none was made, or there was no time for it.
    let ending: Rehearsal.Ending?
    let outcome: Outcome

    private init(_ decision: Rehearsal.Decision, _ ending: Rehearsal.Ending?) {
        (host, entry, self.ending) = (decision.host, decision.entry, ending)
        outcome =
            switch ending {
            case nil where decision.act == nil: .refused(decision.denial)
            case nil: .failed(cause: "there was no time left", isOverTLS: false)
            case .success?: .accepted
            case .failure(let failure)?:
                Self.outcome(failure, Rehearsal.Answer(failure, for: decision.host, entry: decision.entry))
            }
    }

    private static func outcome(_ failure: UpstreamFailure, _ answer: Rehearsal.Answer) -> Outcome {
        switch failure {
        case .refused: .refused(answer)
        case _ where failure.isOverCertificates: .refused(answer)
        case .tls, .otherProtocol: .failed(cause: answer.title, isOverTLS: true)
        default: .failed(cause: answer.title, isOverTLS: false)
        }
    }

    /// Connects as the proxy with that configuration would, to some hosts at a time.
    /// - Parameter limit: how long all may take together; each step has the proxy's own timeouts besides.
    static func ask(
        _ hosts: [Rehearsal.Host], in snapshot: Snapshot, at now: UnixTime, within limit: Duration
    ) throws -> [HostTrial] {
        let decisions = hosts.map { Rehearsal.Decision($0, in: snapshot) }
        let judged = decisions.indices.compactMap { index in decisions[index].act.map { (index: index, act: $0) } }
        let endings = try Rehearsal(snapshot, at: now).play(judged.map { (hosts[$0.index], $0.act) }, within: limit)
        let found = Dictionary(zip(judged.map(\.index), endings)) { first, _ in first }
        return decisions.indices.map { HostTrial(decisions[$0], found[$0] ?? nil) }
    }
}

/// A host under a new policy, beside the one in force.
struct RehearsedHost {
    enum Verdict {
        case accepted
        /// - Parameter isNew: it is accepted by what is in force; nil: that isn't known.
        case refused(cause: String, isNew: Bool?)
        case unknown(cause: String)
    }

    let trial: HostTrial
    let verdict: Verdict

    /// Hosts that are refused, or fail in TLS, are tried again with the policy in force.
    static func rehearse(
        _ hosts: [Rehearsal.Host], under new: Snapshot, beside current: Snapshot, at now: UnixTime,
        within limit: Duration
    ) throws -> [RehearsedHost] {
        let trials = try HostTrial.ask(hosts, in: new, at: now, within: limit)
        let doubtful = trials.filter { $0.isDoubtful }.map(\.host)
        let today = try HostTrial.ask(doubtful, in: current, at: now, within: limit)
        let outcomes = Dictionary(today.map { ($0.host, $0.outcome) }) { first, _ in first }
        return trials.map { RehearsedHost(trial: $0, verdict: Verdict($0.outcome, today: outcomes[$0.host])) }
    }
}

extension HostTrial {
    fileprivate var isDoubtful: Bool {
        switch outcome {
        case .refused: true
        case .failed(_, let isOverTLS): isOverTLS
        case .accepted: false
        }
    }
}

extension RehearsedHost.Verdict {
    fileprivate init(_ outcome: HostTrial.Outcome, today: HostTrial.Outcome?) {
        switch (outcome, today) {
        case (.accepted, _): self = .accepted
        case (.refused(let answer), .accepted?): self = .refused(cause: answer.line, isNew: true)
        case (.refused(let answer), .refused?): self = .refused(cause: answer.line, isNew: false)
        case (.refused(let answer), _): self = .refused(cause: answer.line, isNew: nil)
        case (.failed(let cause, isOverTLS: true), .accepted?): self = .refused(cause: cause, isNew: true)
        case (.failed(let cause, isOverTLS: true), .refused?): self = .refused(cause: cause, isNew: false)
        case (.failed(let cause, _), _): self = .unknown(cause: cause)
        }
    }
}

extension Rehearsal.Answer {
    fileprivate var line: String { "\(status) \(title)" }
}
