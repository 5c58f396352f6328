/// One signed certificate timestamp (RFC 6962 section 3.2): a log's promise to publish the certificate.
package struct CertificateTimestamp: Sendable, Hashable, CustomStringConvertible {
    package enum Source: String, Sendable {
        case certificate, handshake
        case ocspResponse = "OCSP response"
    }

    package enum Outcome: Sendable, Hashable {
        case valid
        case unknownLog
        case badSignature
        /// Later than the check.
        case fromTheFuture
        case unknownVersion
        /// The chain has no issuer to check it with.
        case noIssuer
    }

    package let source: Source
    /// SHA-256 of the log's key, in hexadecimal.
    package let logID: String
    package let log: String?
    package let time: UnixTime
    package let outcome: Outcome

    package var isValid: Bool { outcome == .valid }

    package var description: String {
        let verdict =
            switch outcome {
            case .valid: "valid"
            case .unknownLog: "the log is not in the list"
            case .badSignature: "its signature is not valid"
            case .fromTheFuture: "it is from the future"
            case .unknownVersion: "it has an unknown version"
            case .noIssuer: "it can't be checked without an issuer"
            }
        return "\(log ?? "log \(logID)"), \(CalendarDate(time)), in the \(source.rawValue): \(verdict)"
    }
}
