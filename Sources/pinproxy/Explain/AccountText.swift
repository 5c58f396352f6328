internal import Clients
internal import Configuration
internal import FoundationEssentials
internal import Glibc
internal import Security
internal import TLS

extension Account {
    /// The account for people.
    func text(_ palette: Palette) -> String {
        let readable = InternationalName.toUnicode(decision.host.name)
        let alphabet = readable == decision.host.name ? "" : " (\(readable.printable))"
        var lines = [row("host", "\(decision.host)\(alphabet)"), row("entry", deciding)]
        lines += others.map { row("", "\($0.location): \($0.pattern) matches too, less specific") }
        lines.append(row("action", "\(decision.action.rawValue): \(meaning)"))
        if decision.entry?.showsRefusals == true {
            lines.append(row("refusal", "page: where the server is refused, the client is shown why inside its TLS (on_refusal)"))
        }
        if let clients = decision.entry?.clients {
            lines.append(row("clients", "\(clients); others are refused (--client says what becomes of one)"))
        }
        if let request = rules.decidingLine { lines.append(row("request", request)) }
        if let connection {
            let tls = [connection.version?.description, connection.cipher].compactMap(\.self).joined(separator: " ")
            lines.append(row("connected", connection.address + (tls.isEmpty ? "" : ", \(tls)")))
        }
        if let request = connection?.certificateRequest { lines.append(row("client", asked(request))) }
        if !isTried { lines.append(row("chain", "not judged: no connection is made with --response")) }
        if let file { lines.append(row("chain", "of \(file.printable); no connection was made")) }
        if isClockSet { lines.append(row("date", "\(CalendarDate(now)), as asked for by --at")) }
        lines += rules.lines(palette) + chainLines + checkLines(palette) + outcome(palette) + rules.judgementLines(palette)
        return lines.joined(separator: "\n") + "\n"
    }

    private func row(_ label: String, _ text: String) -> String {
        label.padded(to: 10) + text
    }

    private var deciding: String {
        guard let entry = decision.entry else { return "none matches: the defaults of the pin file decide" }
        let rank = others.isEmpty ? "" : ", the most specific of \(others.count + 1)"
        return "\(entry.location): match: \(entry.pattern)\(rank)"
    }

    private var meaning: String {
        switch decision.action {
        case .intercept: "the proxy ends TLS on both sides, and the policy judges the server"
        case .tunnel: "bytes pass untouched, and no certificate is looked at"
        case .verifyTunnel: "bytes pass untouched, once the policy has accepted the server's chain"
        case .deny: "refused"
        }
    }

    /// What the host wants of the proxy, and gets.
    private func asked(_ request: ClientCertificateRequest) -> String {
        let issuers = request.acceptableIssuers.prefix(3).map { $0.printable(longest: 120) }.joined(separator: " or ")
        let more = request.acceptableIssuers.count > 3 ? " or others" : ""
        let asked = "the host asks for a client certificate" + (issuers.isEmpty ? "" : " issued by \(issuers)\(more)")
        guard let shown = request.shown else { return "\(asked); none is configured (client_certificate)" }
        return "\(asked); it is shown \(shown.subject.printable), valid until \(CalendarDate(shown.notAfter))"
    }

    private var chainLines: [String] {
        let (facts, isVerified) = chain
        guard !facts.isEmpty else { return [] }
        return ["", isVerified ? "The verified chain:" : "The chain as presented, NOT VERIFIED:"]
            + facts.flatMap(\.lines).map { "  " + $0 }
    }

    private func checkLines(_ palette: Palette) -> [String] {
        guard let checks = explanation?.checks, !checks.isEmpty else { return [] }
        return ["", "Checks:"]
            + checks.flatMap { check in
                let lines = check.lines.map { $0.printable(longest: 1000) }
                let name = check.name.rawValue.padded(to: 16)
                let outcome = check.outcome.rawValue.padded(to: 9)
                let first = "  \(palette.paint(outcome, check.outcome))\(name)\(lines.first ?? "")"
                return [first] + lines.dropFirst().map { String(repeating: " ", count: 29) + $0 }
            }
    }

    private func outcome(_ palette: Palette) -> [String] {
        if let answer {
            let refused = palette.paint("Refused", .failed)
            return ["", "\(refused): a client is told \(answer.status) \(answer.title.printable)", ""] + answer.text.printableLines
        }
        guard isTried, rules.refusal == nil else { return [] }
        guard let report = explanation?.verdict.report else { return ["", palette.paint("Let through", .passed)] }
        return ["", palette.paint("Let through", .reported) + ", and reported:", ""]
            + (report.details.hasSuffix("\n") ? String(report.details.dropLast()) : report.details).printableLines
    }
}
