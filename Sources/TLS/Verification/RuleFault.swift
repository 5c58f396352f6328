import CPinproxyOpenSSL
import Glibc

/// A violated rule of ``CertificateRules``.
struct RuleFault {
    let reason: VerificationFailure.Reason
    /// Precedes the subject in the message, after "certificate" or "issuing certificate".
    let text: String

    static func malformed(_ text: String) -> RuleFault {
        RuleFault(reason: .malformed, text: "breaks RFC 5280: \(text)")
    }
    static func wrongPurpose(_ text: String) -> RuleFault {
        RuleFault(reason: .wrongPurpose, text: "is not for TLS servers: \(text)")
    }
    static func weakKey(_ text: String) -> RuleFault {
        RuleFault(reason: .weakKey, text: "has a key that isn't accepted: \(text)")
    }
}

extension VerificationFailure {
    init(_ fault: RuleFault, depth: Int, certificate: Certificate) {
        // Sent as bad_certificate.
        x509Code = X509_V_ERR_CERT_REJECTED
        self.depth = depth
        self.certificate = certificate
        reason = fault.reason
        message = "\(Self.role(depth)) \(fault.text) (\(Self.subject(of: certificate)))"
    }
}
