internal import Security

/// What the entries of one pin file have in common, made once for all that agree.
final class SharedParts {
    let patterns: HostPatterns
    let tls: ClientTLSFactory
    private var policyTerms = SharedValues<PolicyTerms>()
    private var entryTerms = SharedValues<EntryTerms>()

    init(patterns: HostPatterns, tls: ClientTLSFactory) {
        self.patterns = patterns
        self.tls = tls
    }

    func entry(_ number: Int, at place: YAMLValue, policy: SecurityPolicy, _ terms: EntryTerms) -> HostEntry {
        HostEntry(
            policy: policy.sharing(&policyTerms), terms: entryTerms.shared(terms), number: number, line: place.line,
            column: place.column)
    }
}
