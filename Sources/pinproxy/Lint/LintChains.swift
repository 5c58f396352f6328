internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySession
internal import PinproxyTLS

/// Asks what the policy would say of each entry's host now, by pins and all other demands, and whether its revocation
/// lists cover the chain. A wildcard is asked through the hosts that the proxy has recorded (``ChainHistory``).
struct LintChains {
    let snapshot: Snapshot
    let history: ChainHistory
    let now: UnixTime
    /// How long all connections may take together.
    let limit: Duration

    struct Findings {
        var findings: [LintFinding]
        /// Wildcards without a known host.
        var wildcards: [HostEntry]
    }

    private static let perWildcard = 5

    func findings() throws -> Findings {
        var asked: [(entry: HostEntry, host: Rehearsal.Host, act: Rehearsal.Act)] = []
        var wildcards: [HostEntry] = []
        let visited = visitedHosts()
        for listed in snapshot.hosts.entries {
            let (pattern, entry) = (listed.pattern, listed.value)
            guard entry.action.isJudged else { continue }
            var hosts = visited[ObjectIdentifier(entry)] ?? []
            if pattern.scope == .exact, hosts.isEmpty || pattern.port != nil {
                hosts = [pattern.usualHost].compactMap(\.self)
            }
            if hosts.isEmpty { wildcards.append(entry) }
            for host in hosts.prefix(Self.perWildcard) {
                if let act = Rehearsal.Decision(host, in: snapshot).act { asked.append((entry, host, act)) }
            }
        }
        let rehearsal = try Rehearsal(snapshot, at: now)
        let endings = try rehearsal.play(asked.map { ($0.host, $0.act) }, within: limit)
        let tries = zip(asked, endings).map { asked, ending in (asked.entry, asked.host, ending) }
        return Findings(findings: Self.findings(of: tries), wildcards: wildcards)
    }

    /// Findings from connections made by the entries.
    /// - Parameter tries: without an ending where there was no time for it.
    static func findings(
        of tries: [(entry: HostEntry, host: Rehearsal.Host, ending: Rehearsal.Ending?)]
    ) -> [LintFinding] {
        tries.flatMap { judge($0.entry, $0.host, $0.ending) }
            + unlisted(tries.compactMap { Listed($0.entry, $0.host, $0.ending) })
    }

    /// The hosts of the history by the entries that decide for them, in their order.
    private func visitedHosts() -> [ObjectIdentifier: [Rehearsal.Host]] {
        var found: [ObjectIdentifier: [Rehearsal.Host]] = [:]
        for (_, visited) in history.hosts.sorted(by: { $0.key < $1.key }) {
            guard let host = try? Rehearsal.Host(name: visited.name, port: visited.port),
                let entry = snapshot.entry(for: host.name, port: host.port)
            else { continue }
            found[ObjectIdentifier(entry), default: []].append(host)
        }
        return found
    }

    // MARK: Revocation lists

    /// A chain that was looked up in an entry's lists.
    private struct Listed {
        let entry: HostEntry
        let host: Rehearsal.Host
        /// Entries that inherit them have the same ones.
        let lists: RevocationLists
        let chain: VerifiedChain

        init?(_ entry: HostEntry, _ host: Rehearsal.Host, _ ending: Rehearsal.Ending?) {
            guard let lists = entry.policy.requirements.revocationLists, !lists.isEmpty,
                case .success(let connection)? = ending,
                let chain = connection.verdict.flatMap({ $0.trustedChain ?? $0.chain })
            else { return nil }
            (self.entry, self.host, self.lists, self.chain) = (entry, host, lists, chain)
        }
    }

    /// Issuers that no list is for. Lists that other hosts have a use for may be there for those.
    private static func unlisted(_ judged: [Listed]) -> [LintFinding] {
        let useful = Set(judged.filter { !$0.chain.isUnlisted }.map { ObjectIdentifier($0.lists) })
        return judged.compactMap { judged in
            let issuers = judged.chain.unlistedIssuers
            guard !issuers.isEmpty else { return nil }
            let strangers = judged.lists.strangers(to: judged.chain).filter { list in
                issuers.contains { $0.subject == list.issuer }
            }
            guard strangers.isEmpty else { return stranger(strangers, to: judged) }
            let names = issuers.map { $0.subject.printable }.joined(separator: ", nor for ")
            return LintFinding(
                .noRevocationList, useful.contains(ObjectIdentifier(judged.lists)) ? .note : .warning, of: judged.entry,
                "crl_files has no list for \(names), in the chain of \(judged.host): certificates revoked there are "
                    + "let through",
                fix: "add the issuer's list to crl_files, or remove the lists that are of no use to the host")
        }
    }

    /// A list is there, and looks as if it served.
    private static func stranger(_ lists: [RevocationListTerm], to judged: Listed) -> LintFinding {
        let named = lists.map { "\($0.description.printable)" }.joined(separator: ", ")
        return LintFinding(
            .noRevocationList, of: judged.entry,
            "\(named) is signed by another key than the issuer in the chain of \(judged.host): certificates revoked "
                + "there are let through",
            fix: "fetch the list by the address in the host's certificate (CRL Distribution Points)")
    }

    // MARK: Chains

    private static func judge(_ entry: HostEntry, _ host: Rehearsal.Host, _ ending: Rehearsal.Ending?) -> [LintFinding]
    {
        let explain = "pinproxy explain \(host) says why"
        switch ending {
        case nil:
            return [
                LintFinding(
                    .notChecked, .note, of: entry, "the chain of \(host) was not checked: there was no time left",
                    fix: "lint fewer hosts at a time, or with --offline none")
            ]
        case .failure(.refused(let verdict, _))?:
            let title = verdict.refusal?.title ?? "refused"
            return [
                LintFinding(.refusedNow, of: entry, "a request to \(host) would be refused now: \(title)", fix: explain)
            ]
                + places(entry, verdict)
        case .failure(let failure)?:
            let answer = Rehearsal.Answer(failure, for: host, entry: entry)
            if failure.isOverCertificates {
                return [
                    LintFinding(
                        .refusedNow, of: entry, "a request to \(host) would fail now: \(answer.title)", fix: explain)
                ]
            }
            return [
                LintFinding(
                    .notChecked, .note, of: entry, "the chain of \(host) could not be checked: \(answer)",
                    fix: "try again when the host can be reached from here, or skip this with --offline")
            ]
        case .success(let connection)?:
            guard let verdict = connection.verdict else { return [] }
            let report = verdict.report.map {
                LintFinding(
                    .pinMismatch, of: entry,
                    "a request to \(host) would be refused if the pins were enforced: \($0.title)",
                    fix: explain)
            }
            return (report.map { [$0] } ?? []) + places(entry, verdict) + upgrades(entry, host, connection)
        }
    }

    /// WebSockets that can't reach a host, since nothing but HTTP/2 is offered to it.
    private static func upgrades(
        _ entry: HostEntry, _ host: Rehearsal.Host, _ connection: Rehearsal.Connection
    ) -> [LintFinding] {
        guard let http = connection.http, !http.offered.contains(.http1), http.takesExtendedConnect == false else {
            return []
        }
        return [
            LintFinding(
                .noUpgrades, .note, of: entry,
                """
                WebSockets and other upgrades can't reach \(host): session.http is [h2], and the host takes none over \
                HTTP/2 (RFC 8441)
                """,
                fix: "write http: [h2, http/1.1], unless nobody needs them")
        ]
    }

    /// Pins that do nothing in the present chain, where others do.
    private static func places(_ entry: HostEntry, _ verdict: Verdict) -> [LintFinding] {
        guard let chain = verdict.chain else { return [] }
        let isMet = verdict.matchedPin != nil
        return entry.policy.pins.pins.compactMap { pin in
            switch entry.policy.place(of: pin, in: chain) {
            case .matches: return nil
            case .ruledOut(let depth):
                return LintFinding(
                    .pinOutOfPosition, of: entry,
                    "\(pin) is in the chain at depth \(depth), where position: \(entry.policy.position.rawValue) "
                        + "does not allow it to match",
                    fix: "write position: any, or the pin of the intended certificate")
            case .absent:
                // A chain without any match is reported elsewhere.
                guard isMet else { return nil }
                return LintFinding(
                    .pinNotInChain, .note, of: entry, "\(pin) matches nothing in the chain that the host presents now",
                    fix: "keep it if it is a backup whose private key is still available; else remove it")
            }
        }
    }
}

extension HostPattern {
    /// The host to connect to, if no visited port is known; nil: a pattern of several hosts.
    var usualHost: Rehearsal.Host? {
        scope == .exact ? try? Rehearsal.Host(name: name, port: port ?? 443) : nil
    }
}

extension UpstreamFailure {
    /// The client's certificate, or the server's before it was judged: trying again doesn't help.
    var isOverCertificates: Bool {
        if case .clientCertificate = self { true } else { unjudgedCertificates != nil }
    }
}
