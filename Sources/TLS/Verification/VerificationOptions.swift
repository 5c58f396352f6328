package struct VerificationOptions: Sendable {
    /// The name to find in the leaf's subjectAltName; nil: any name, which callers report.
    package var name: ServerName?
    package var wildcards: WildcardRule
    package var time: UnixTime
    /// End a chain at the first anchor, as with pinned certificates, rather than prefer a self-signed one.
    package var allowsPartialChain: Bool
    /// Checked for certificates below the anchor.
    package var revocationLists: RevocationLists?
    /// Seconds of the leaf's validity, inclusive (RFC 5280 section 4.1.2.5). nil: any.
    package var maximumLeafLifetime: Int64?

    package init(
        name: ServerName?, time: UnixTime, wildcards: WildcardRule = .oneLabel, allowsPartialChain: Bool = false,
        revocationLists: RevocationLists? = nil, maximumLeafLifetime: Int64? = nil
    ) {
        self.name = name
        self.wildcards = wildcards
        self.time = time
        self.allowsPartialChain = allowsPartialChain
        self.revocationLists = revocationLists
        self.maximumLeafLifetime = maximumLeafLifetime
    }
}

package enum WildcardRule: Sendable, Hashable {
    /// As the whole left-most label, for one label (RFC 9525 section 6.3).
    case oneLabel
    /// Not at all: directly below a public suffix, `*.co.uk` would cover everybody there.
    case refused(publicSuffix: String)
}
