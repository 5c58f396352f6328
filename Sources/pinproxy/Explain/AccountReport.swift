internal import Clients
internal import Configuration
internal import Security
internal import TLS

extension Account {
    /// The account for programs.
    var json: String {
        let verdict = explanation?.verdict
        let rules = rules.report
        return JSONText.of(
            Report(
                host: decision.host.name, port: decision.host.port, at: "\(CalendarDate(now))",
                entry: decision.entry.map(Report.Entry.init), alsoMatching: others.map(Report.Entry.init), clients: decision.entry?.clients.map(Report.Clients.init),
                action: decision.action.rawValue, request: rules.request, rules: rules.rules,
                pathRules: rules.pathRules, address: connection?.address,
                tlsVersion: connection?.version?.description, cipher: connection?.cipher,
                clientCertificate: connection?.certificateRequest.map(Report.ClientCertificate.init),
                verified: chain.isVerified, chain: chain.facts,
                checks: (explanation?.checks ?? []).map {
                    Report.Check(name: $0.name.rawValue, outcome: $0.outcome.rawValue, lines: $0.lines)
                },
                matchedPin: verdict?.matchedPin?.description, matchedDepth: verdict?.matchedDepth,
                letThrough: isTried ? isLetThrough : nil, reported: verdict?.report != nil,
                refusal: answer.map(RefusalReport.init), expected: rules.expected, response: rules.response))
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

            init(_ clients: EntryClients) { (users, units, executables) = (clients.users?.map(\.name), clients.units, clients.executables) }
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
        let action: String
        let request: RuleAccount.Report.Request?
        let rules: [RuleAccount.Report.Key]?
        let pathRules: [RuleAccount.Report.Rule]?
        let address: String?
        let tlsVersion: String?
        let cipher: String?
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
    }
}
