package import Security
package import Session
package import Synchronization

/// What is done with a host (`action` in pins.yaml).
package enum HostAction: String, Sendable, CaseIterable {
    /// The proxy ends TLS on both sides, and the policy decides.
    case intercept
    /// Bytes pass through untouched; the client's own TLS decides.
    case tunnel
    /// Bytes pass through untouched, once the policy has accepted what the server shows.
    case verifyTunnel = "verify-tunnel"
    /// Refused.
    case deny

    /// The policy looks at the server's certificates.
    package var isJudged: Bool { self == .intercept || self == .verifyTunnel }
}

/// One entry of the pin file. A class, so that a look-up hands out a reference and copies nothing.
package final class HostEntry: Sendable {
    package let action: HostAction
    /// What decides where the action looks at certificates; without pins elsewhere.
    package let policy: SecurityPolicy
    /// How TLS is spoken with the host; nil where the action doesn't speak it.
    package let tls: ClientTLS?
    /// Who is told of pins that don't match.
    package let reportURI: ReportURI?
    /// A client is told inside its TLS, as by the origin, that the origin is refused (`on_refusal: page`).
    package let showsRefusals: Bool
    /// The chains seen are recorded, to make pins of them (`record: true`).
    package let records: Bool
    /// How exchanges with the host are made, shaped and judged; nil: nothing is written about it.
    package let rules: RuleLayers?
    /// Who may use the entry; nil: everybody.
    package let clients: EntryClients?
    /// Where exchanges with the host are counted; -1 until somebody counts them.
    package let slot = Atomic<Int>(-1)
    /// As it was written, for people.
    package let pattern: String
    package let file: String
    /// Where its pattern is written.
    package let line: Int
    package let column: Int

    package var place: Place { Place(file: file, line: line, column: column) }

    /// `FILE:LINE`; no line where it is written in no file.
    package var location: String { line > 0 ? "\(file):\(line)" : file }

    package init(
        action: HostAction, policy: SecurityPolicy, tls: ClientTLS? = nil, reportURI: ReportURI? = nil,
        showsRefusals: Bool = false, records: Bool = false, rules: RuleLayers? = nil, clients: EntryClients? = nil, pattern: String,
        file: String, line: Int, column: Int
    ) {
        self.action = action
        self.policy = policy
        self.tls = tls
        self.reportURI = reportURI
        self.showsRefusals = showsRefusals
        self.records = records
        self.rules = rules
        self.clients = clients
        self.pattern = pattern
        self.file = file
        self.line = line
        self.column = column
    }

    /// The same entry with another policy.
    init(_ other: HostEntry, policy: SecurityPolicy) {
        action = other.action
        self.policy = policy
        tls = other.tls
        reportURI = other.reportURI
        showsRefusals = other.showsRefusals
        records = other.records
        rules = other.rules
        clients = other.clients
        pattern = other.pattern
        file = other.file
        line = other.line
        column = other.column
    }
}
