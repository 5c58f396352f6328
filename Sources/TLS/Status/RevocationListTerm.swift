/// The issuer and the validity of a revocation list (RFC 5280 section 5.1.2).
package struct RevocationListTerm: Sendable, Hashable {
    package let path: String
    /// E.g. `CN=Corporate CA`.
    package let issuer: String
    package let thisUpdate: UnixTime
    /// The last valid second: later every certificate of its issuer is refused.
    package let nextUpdate: UnixTime
}

extension RevocationListTerm: CustomStringConvertible {
    package var description: String { "the CRL of \(issuer) (\(path))" }
}
