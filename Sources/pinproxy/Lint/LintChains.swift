internal import Configuration
internal import Proxy
internal import Security
internal import Session
internal import TLS

/// Compares the pins with the chains that the hosts show now. Only exact patterns can be asked.
struct LintChains {
    let snapshot: Snapshot
    let now: UnixTime
    /// How long all connections may take together.
    let limit: Duration

    struct Findings {
        var findings: [LintFinding]
        /// Entries with pins that name no one host.
        var wildcards: [HostEntry]
    }

    func findings() throws -> Findings {
        var asked: [(entry: HostEntry, host: Rehearsal.Host, act: Rehearsal.Act)] = []
        var wildcards: [HostEntry] = []
        for listed in snapshot.hosts.entries where listed.value.policy.mode != .none {
            let (pattern, entry) = (listed.pattern, listed.value)
            guard pattern.scope == .exact, let host = try? Rehearsal.Host(name: pattern.name, port: pattern.port ?? 443)
            else {
                wildcards.append(entry)
                continue
            }
            if let act = Rehearsal.Decision(host, in: snapshot).act { asked.append((entry, host, act)) }
        }
        let rehearsal = try Rehearsal(snapshot, at: now)
        let endings = try rehearsal.play(asked.map { ($0.host, $0.act) }, within: limit)
        let findings = zip(asked, endings).flatMap { asked, ending in
            judge(asked.entry, asked.host, ending)
        }
        return Findings(findings: findings, wildcards: wildcards)
    }

    private func judge(_ entry: HostEntry, _ host: Rehearsal.Host, _ ending: Rehearsal.Ending?) -> [LintFinding] {
        let explain = "pinproxy explain \(host) says why"
        switch ending {
        case nil:
            return [
                LintFinding(
                    .notChecked, .note, of: entry, "its chain was not looked at: there was no time left",
                    fix: "lint fewer hosts at a time, or with --offline none")
            ]
        case .failure(.refused(let verdict))?:
            let title = verdict.refusal?.title ?? "refused"
            return [LintFinding(.refusedNow, of: entry, "a request would be refused now: \(title)", fix: explain)]
                + places(entry, verdict)
        case .failure(let failure)?:
            let answer = Rehearsal.Answer(failure, for: host)
            return [
                LintFinding(
                    .notChecked, .note, of: entry, "its chain can't be looked at: \(answer)",
                    fix: "try again when the host can be reached from here, or skip this with --offline")
            ]
        case .success(let connection)?:
            guard let verdict = connection.verdict else { return [] }
            let report = verdict.report.map {
                LintFinding(
                    .pinMismatch, of: entry, "a request would be refused if the pins were enforced: \($0.title)",
                    fix: explain)
            }
            return (report.map { [$0] } ?? []) + places(entry, verdict)
        }
    }

    /// Pins that do nothing in the present chain, where others do.
    private func places(_ entry: HostEntry, _ verdict: Verdict) -> [LintFinding] {
        guard let chain = verdict.chain else { return [] }
        let isMet = verdict.matchedPin != nil
        return entry.policy.pins.pins.compactMap { pin in
            switch entry.policy.place(of: pin, in: chain) {
            case .matches: return nil
            case .ruledOut(let depth):
                return LintFinding(
                    .pinOutOfPosition, of: entry,
                    "\(pin) is in the chain at depth \(depth), where position: \(entry.policy.position.rawValue) "
                        + "doesn't let it match",
                    fix: "write position: any, or the pin of the certificate that is meant")
            case .absent:
                // Where none is met that has been said, and is no matter of one pin.
                guard isMet else { return nil }
                return LintFinding(
                    .pinNotInChain, .note, of: entry, "\(pin) matches nothing in the chain that the host shows now",
                    fix: "keep it if it is the backup, and its private key still at hand; else remove it")
            }
        }
    }
}
