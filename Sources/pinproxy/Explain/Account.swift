internal import FoundationEssentials
internal import Glibc
internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxyEventLoop
internal import PinproxySecurity
internal import PinproxySession
internal import PinproxyTLS

/// A policy's decision for a host, and the reasons: the output of `pinproxy explain`.
struct Account {
    enum Ending {
        case denied
        case notAdmitted(Rehearsal.Answer)
        /// Decided by a connection.
        case tried(Rehearsal.Ending)
        /// Decided by a chain on disk; nil if the action checks no chain.
        case given(Explanation?, file: String)
        /// Neither was requested.
        case untried
    }

    let decision: Rehearsal.Decision
    let others: [HostEntry]
    let rules: RuleAccount
    /// When, where or after what the pins are enforced; nil: as the entry says.
    let rollout: RolloutAccount?
    let now: UnixTime
    /// The time was set on the command line.
    let isClockSet: Bool
    /// The file of the chain; nil: the host's chain.
    let file: String?
    let connection: Rehearsal.Connection?
    /// The contact with a refused origin.
    let contact: OriginContact?
    let explanation: Explanation?
    /// The answer to a client; nil if the host is allowed.
    let answer: Rehearsal.Answer?
    /// A connection, a chain or the policy decided.
    let isTried: Bool

    init(
        _ decision: Rehearsal.Decision, _ ending: Ending, others: [HostEntry], rules: RuleAccount,
        rollout: RolloutAccount?, anchors: TrustAnchors,
        at now: UnixTime, isClockSet: Bool
    ) {
        self.decision = decision
        self.others = others
        self.rules = rules
        self.rollout = rollout
        self.now = now
        self.isClockSet = isClockSet
        contact = if case .tried(.failure(let failure)) = ending { failure.contact } else { nil }
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
                    $0.verdict.isAccepted ? nil : Rehearsal.Answer(.refused($0.verdict, nil), for: decision.host)
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
            if case .refused(let verdict, let contact) = failure {
                explanation = decision.explain(
                    verdict.presented, evidence: verdict.evidence, version: contact?.tls?.version, anchors: anchors,
                    at: now)
            } else {
                explanation = nil
            }
        }
    }

    var isLetThrough: Bool { answer == nil }

    /// The verified chain, else the presented one.
    var chain: (facts: [CertificateFacts], isVerified: Bool) {
        guard let verdict = explanation?.verdict else { return ([], false) }
        return verdict.chain.map { (CertificateFacts.of($0, at: now), true) }
            ?? (CertificateFacts.of(verdict.presented, at: now), false)
    }
}

extension Rehearsal.Decision {
    /// - Parameter evidence: the server's evidence besides its chain; nil: no server was asked.
    func explain(
        _ presented: PresentedChain, evidence: PeerEvidence? = nil, version: TLSVersion? = nil, anchors: TrustAnchors,
        at now: UnixTime
    ) -> Explanation? {
        guard action == .intercept || action == .verifyTunnel else { return nil }
        return policy.explain(
            presented, evidence: evidence, version: version, host: host.serverName, anchors: anchors, at: now)
    }
}

extension Account {
    var json: String {
        let verdict = explanation?.verdict
        let rules = rules.report
        return JSONText.of(
            Report(
                host: decision.host.name, port: decision.host.port, at: "\(CalendarDate(now))",
                entry: decision.entry.map(Report.Entry.init), alsoMatching: others.map(Report.Entry.init),
                clients: decision.entry?.clients.map(Report.Clients.init), rollout: rollout?.report,
                action: decision.action.rawValue, request: rules.request, rules: rules.rules,
                pathRules: rules.pathRules, address: connection?.address ?? contact.map { "\($0.address)" },
                resolved: (connection?.answer ?? contact?.answer)?.addresses.map(\.description),
                resolver: connection?.answer.map { "\($0.source)" } ?? contact?.source,
                tlsVersion: (connection?.version ?? contact?.tls?.version)?.description,
                cipher: connection?.cipher ?? contact?.tls?.cipher, tlsGroup: connection?.group ?? contact?.tls?.group,
                offeredProtocols: connection?.http?.offered.map(\.rawValue),
                protocol: connection?.http?.spoken.rawValue,
                extendedConnect: connection?.http?.takesExtendedConnect,
                clientCertificate: connection?.certificateRequest.map(Report.ClientCertificate.init),
                verified: chain.isVerified, chain: chain.facts,
                checks: (explanation?.checks ?? []).map {
                    Report.Check(name: $0.name.rawValue, outcome: $0.outcome.rawValue, lines: $0.lines)
                },
                matchedPin: verdict?.matchedPin?.description, matchedDepth: verdict?.matchedDepth,
                letThrough: isTried ? isLetThrough : nil, reported: verdict?.report != nil,
                refusal: answer.map(RefusalReport.init), expected: rules.expected, response: rules.response,
                cache: rules.cache))
    }

    private struct Report: Encodable {
        struct Entry: Encodable {
            let pattern: String
            let file: String
            let line: Int
            let onRefusal: String?

            init(_ entry: HostEntry) {
                (pattern, file, line) = (entry.pattern, entry.file, entry.line)
                onRefusal = entry.showsRefusals ? "page" : nil
            }
        }
        struct Clients: Encodable {
            let users: [String]?
            let units: [String]?
            let executables: [String]?

            init(_ clients: EntryClients) {
                (users, units, executables) = (clients.users?.map(\.name), clients.units, clients.executables)
            }
        }
        struct ClientCertificate: Encodable {
            let acceptableIssuers: [String]
            let shown: String?
            let notAfter: String?

            init(_ request: ClientCertificateRequest) {
                acceptableIssuers = request.acceptableIssuers
                shown = request.shown?.subject
                notAfter = request.shown.map { "\(CalendarDate($0.notAfter))" }
            }
        }
        struct Check: Encodable {
            let name: String
            let outcome: String
            let lines: [String]
        }
        let host: String
        let port: UInt16
        let at: String
        let entry: Entry?
        let alsoMatching: [Entry]
        let clients: Clients?
        let rollout: RolloutAccount.Report?
        let action: String
        let request: RuleAccount.Report.Request?
        let rules: [RuleAccount.Report.Key]?
        let pathRules: [RuleAccount.Report.Rule]?
        let address: String?
        let resolved: [String]?
        let resolver: String?
        let tlsVersion: String?
        let cipher: String?
        let tlsGroup: String?
        let offeredProtocols: [String]?
        let `protocol`: String?
        let extendedConnect: Bool?
        let clientCertificate: ClientCertificate?
        let verified: Bool
        let chain: [CertificateFacts]
        let checks: [Check]
        let matchedPin: String?
        let matchedDepth: Int?
        let letThrough: Bool?
        let reported: Bool
        let refusal: RefusalReport?
        let expected: ExpectedResponse.Report?
        let response: ResponseJudgement.Report?
        let cache: CacheAccount.Report?
    }
}

extension Account {
    /// The verdict, then the reasons.
    /// - Parameter isVerbose: whole certificates, and everything that passed checks compared.
    func text(_ palette: Palette, isVerbose: Bool = false) -> String {
        let verdict = outcome(palette) + rules.verdictLines(palette)
        // Each part begins with an empty line.
        var lines =
            verdict.dropFirst() + [""] + rows + rules.lines(palette) + chainLines(isVerbose)
            + checkLines(palette, isVerbose)
        if !isVerbose, explanation != nil {
            lines += ["", "--verbose shows the whole chain, and what each check compared"]
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private var rows: [String] {
        let readable = InternationalName.toUnicode(decision.host.name)
        let alphabet = readable == decision.host.name ? "" : " (\(readable.printable))"
        var lines = [row("host", "\(decision.host)\(alphabet)"), row("entry", deciding)]
        lines += others.map { row("", "\($0.location): \($0.pattern) matches too, less specific") }
        lines.append(row("action", "\(decision.action.rawValue): \(meaning)"))
        if let rollout { lines.append(row("pins", rollout.text)) }
        if decision.entry?.showsRefusals == true {
            lines.append(
                row("refusal", "page: where the server is refused, the client is shown why inside its TLS (on_refusal)")
            )
        }
        if let clients = decision.entry?.clients {
            lines.append(row("clients", "\(clients); others are refused (check one with --client)"))
        }
        if let request = rules.decidingLine { lines.append(row("request", request)) }
        if let connection {
            let tls = [connection.version?.description, connection.cipher, connection.group].compactMap(\.self).joined(
                separator: " ")
            lines.append(row("connected", connection.address + (tls.isEmpty ? "" : ", \(tls)")))
            if let answer = connection.answer {
                lines.append(row("resolved", Self.resolved(answer, "\(answer.source)")))
            }
        } else if let contact {
            let tls = contact.tls.map { ", \($0)" } ?? ""
            lines.append(row("connected", "\(contact.address)\(tls)"))
            if let answer = contact.answer, let source = contact.source {
                lines.append(row("resolved", Self.resolved(answer, source)))
            }
        }
        if let http = connection?.http { lines.append(row("protocol", http.account)) }
        if let request = connection?.certificateRequest { lines.append(row("client", asked(request))) }
        if !isTried { lines.append(row("chain", "not judged: no connection is made with --response")) }
        if let file { lines.append(row("chain", "of \(file.printable); no connection was made")) }
        if isClockSet { lines.append(row("date", "\(CalendarDate(now)), as asked for by --at")) }
        return lines
    }

    private static func resolved(_ answer: AddressAnswer, _ source: String) -> String {
        let more = answer.addresses.count > 8 ? " and \(answer.addresses.count - 8) more" : ""
        return "\(answer.addresses.prefix(8).map(\.description).joined(separator: ", "))\(more), from \(source)"
    }

    private func row(_ label: String, _ text: String) -> String {
        label.padded(to: 10) + text
    }

    private var deciding: String {
        guard let entry = decision.entry else {
            return decision.denier ?? "none matches: the defaults of the pin file decide"
        }
        let rank = others.isEmpty ? "" : ", the most specific of \(others.count + 1)"
        return "\(entry.location): match: \(entry.pattern)\(rank)"
    }

    private var meaning: String {
        switch decision.action {
        case .intercept: "the proxy terminates TLS on both sides, and the policy judges the server"
        case .tunnel: "bytes pass untouched, and no certificate is checked"
        case .verifyTunnel: "bytes pass untouched, once the policy has accepted the server's chain"
        case .deny: "refused"
        }
    }

    /// The client certificate that the host requests, and the one presented.
    private func asked(_ request: ClientCertificateRequest) -> String {
        let issuers = request.acceptableIssuers.prefix(3).map { $0.printable(longest: 120) }.joined(separator: " or ")
        let more = request.acceptableIssuers.count > 3 ? " or others" : ""
        let asked = "the host requests a client certificate" + (issuers.isEmpty ? "" : " issued by \(issuers)\(more)")
        guard let shown = request.shown else { return "\(asked); none is configured (client_certificate)" }
        return "\(asked); presented: \(shown.subject.printable), valid until \(CalendarDate(shown.notAfter))"
    }

    private func chainLines(_ isVerbose: Bool) -> [String] {
        let (facts, isVerified) = chain
        guard !facts.isEmpty else { return [] }
        return ["", isVerified ? "The verified chain:" : "The chain as presented, NOT VERIFIED:"]
            + facts.flatMap { isVerbose ? $0.lines : $0.shortLines }.map { "  " + $0 }
    }

    private func checkLines(_ palette: Palette, _ isVerbose: Bool) -> [String] {
        guard let checks = explanation?.checks, !checks.isEmpty else { return [] }
        return ["", "Checks:"]
            + checks.flatMap { check in
                let isShort = !isVerbose && check.outcome == .passed
                let lines = check.lines.prefix(isShort ? 1 : .max).map { $0.printable(longest: 1000) }
                let name = check.name.rawValue.padded(to: 16)
                let outcome = check.outcome.rawValue.padded(to: 9)
                let first = "  \(palette.paint(outcome, check.outcome))\(name)\(lines.first ?? "")"
                return [first] + lines.dropFirst().map { String(repeating: " ", count: 29) + $0 }
            }
    }

    private func outcome(_ palette: Palette) -> [String] {
        if let answer {
            let refused = palette.paint("Refused", .failed)
            return ["", "\(refused): a client gets \(answer.status) \(answer.title.printable)", ""]
                + answer.text.printableLines
        }
        guard isTried, rules.refusal == nil else { return [] }
        guard let report = explanation?.verdict.report else { return ["", palette.paint("Let through", .passed)] }
        return ["", palette.paint("Let through", .reported) + ", and reported:", ""]
            + (report.details.hasSuffix("\n") ? String(report.details.dropLast()) : report.details).printableLines
    }
}
