/// A valid OCSP response that says "good" (RFC 6960).
package struct OCSPStatus: Sendable, Hashable, CustomStringConvertible {
    package let thisUpdate: UnixTime
    /// The last valid second: its nextUpdate, or a week after thisUpdate without one.
    package let validUntil: UnixTime

    package var end: UnixTime { validUntil + 1 }

    package var description: String { "good, as of \(CalendarDate(thisUpdate)), until \(CalendarDate(validUntil))" }
}

package enum OCSPFailure: Error, Sendable, Hashable, CustomStringConvertible {
    case revoked(date: UnixTime?, reason: RevocationReason?)
    case unknown
    /// Past its nextUpdate, or older than a week without one.
    case expired(since: UnixTime)
    case notYetValid(until: UnixTime)
    /// No OCSP response, or an incomplete one.
    case malformed(String)
    case wrongCertificate
    /// Not signed by the issuer or its delegated responder.
    case badSignature(String)
    /// A responder's error, e.g. `trylater`.
    case errorStatus(String)
    /// The leaf is its own anchor: the chain has no issuer.
    case noIssuer

    /// Whether the authority itself revoked the certificate.
    package var isRevocation: Bool { if case .revoked = self { true } else { false } }

    package var description: String {
        switch self {
        case .revoked(let date, let reason):
            "the OCSP response says that the certificate was revoked"
                + (date.map { " on \(CalendarDate($0))" } ?? "") + (reason.map { " (\($0))" } ?? "")
        case .unknown: "the OCSP responder does not know the certificate"
        case .expired(let date): "the OCSP response is out of date since \(CalendarDate(date))"
        case .notYetValid(let date): "the OCSP response is not valid before \(CalendarDate(date))"
        case .malformed(let reason): "the OCSP response is broken: \(reason)"
        case .wrongCertificate: "the OCSP response is about another certificate"
        case .badSignature(let reason): "the OCSP response's signature is not valid: \(reason)"
        case .errorStatus(let status): "the OCSP responder gave no answer but an error: \(status)"
        case .noIssuer: "an OCSP response can't be checked: the chain has no issuer above the certificate"
        }
    }
}
