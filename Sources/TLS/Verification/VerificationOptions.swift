package struct VerificationOptions: Sendable {
    /// The name to find in the leaf's subjectAltName. nil: any name will do, a choice to be loud about.
    package var name: ServerName?
    package var wildcards: WildcardRule
    package var time: UnixTime
    /// True if a chain ends at the first anchor, as with pinned certificates. False if a self-signed anchor is preferred.
    package var allowsPartialChain: Bool
    /// Lists by which certificates below the anchor are judged, where their issuer has one.
    package var revocationLists: RevocationLists?
    /// Seconds of validity that the leaf may have, inclusive (RFC 5280 section 4.1.2.5). nil: any.
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
    /// Not at all, since the name is directly below a public suffix: `*.co.uk` would be for everybody there.
    case refused(publicSuffix: String)
}
