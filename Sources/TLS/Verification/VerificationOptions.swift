/// What a chain is verified for.
package struct VerificationOptions: Sendable {
    /// The name to find in the leaf's subjectAltName. nil: any name will do, a choice to be loud about.
    package var name: ServerName?
    /// Whether a wildcard may stand for the name.
    package var wildcards: WildcardRule
    /// The instant at which the dates must hold.
    package var time: UnixTime
    /// True if a chain ends at the first anchor, as with pinned certificates. False if a self-signed anchor is preferred.
    package var allowsPartialChain: Bool
    /// Each certificate below the anchor is looked up in the list of its issuer, where there is one: it
    /// must not be in it, and the list must be the issuer's, whole, and current at `time`.
    package var revocationLists: RevocationLists?
    /// Seconds for which the leaf may be valid, its first and its last one counted (RFC 5280 section
    /// 4.1.2.5). nil: any.
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

/// Whether a wildcard in a certificate may stand for a name.
package enum WildcardRule: Sendable, Hashable {
    /// As the whole left-most label, for one label (RFC 9525 section 6.3).
    case oneLabel
    /// Not at all, since the name is directly below a public suffix: `*.co.uk` would be for everybody there.
    case refused(publicSuffix: String)
}
