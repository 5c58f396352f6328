package struct RevocationListDefect: Sendable, Hashable, CustomStringConvertible {
    package enum Kind: Sendable, Hashable {
        /// It is signed by another key than its issuer's.
        case anotherKey
        /// The issuer's certificate has a keyUsage without cRLSign.
        case noRight
    }

    package let term: RevocationListTerm
    package let kind: Kind

    package var description: String {
        switch kind {
        case .anotherKey:
            "\(term) is not signed by the key of \(term.issuer) in upstream.trust or pins: certificates revoked there "
                + "are let through"
        case .noRight:
            "\(term) can't be used, since the keyUsage of \(term.issuer) lacks cRLSign: every host with a certificate "
                + "of this issuer is refused"
        }
    }
}
