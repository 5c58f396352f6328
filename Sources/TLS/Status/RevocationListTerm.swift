/// Whose a revocation list is and how long it is good (RFC 5280 section 5.1.2).
package struct RevocationListTerm: Sendable, Hashable {
    package let path: String
    /// Its issuer's subject, e.g. `CN=Corporate CA`.
    package let issuer: String
    package let thisUpdate: UnixTime
    /// The last second that it is good for: after it every certificate of its issuer is refused.
    package let nextUpdate: UnixTime
}

extension RevocationListTerm: CustomStringConvertible {
    package var description: String { "the CRL of \(issuer) (\(path))" }
}
