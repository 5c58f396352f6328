package import Security
package import Session

/// What a ``HostEntry`` says besides its pattern and its policy.
package final class EntryTerms: Sendable, Equatable {
    let action: HostAction
    let tls: ClientTLS?
    let reportURI: ReportURI?
    let showsRefusals: Bool
    let records: Bool
    let rules: RuleLayers?
    let clients: EntryClients?
    /// Where the entry's pattern is one of.
    let patterns: HostPatterns
    let file: String

    package init(
        action: HostAction, tls: ClientTLS? = nil, reportURI: ReportURI? = nil, showsRefusals: Bool = false,
        records: Bool = false, rules: RuleLayers? = nil, clients: EntryClients? = nil, patterns: HostPatterns, file: String
    ) {
        self.action = action
        self.tls = tls
        self.reportURI = reportURI
        self.showsRefusals = showsRefusals
        self.records = records
        self.rules = rules
        self.clients = clients
        self.patterns = patterns
        self.file = file
    }

    /// By every field, as ``PolicyTerms``.
    package static func == (one: EntryTerms, other: EntryTerms) -> Bool {
        one.action == other.action && one.tls === other.tls && one.reportURI == other.reportURI
            && one.showsRefusals == other.showsRefusals && one.records == other.records && one.rules === other.rules
            && one.clients == other.clients && one.patterns === other.patterns && one.file == other.file
    }
}
