package import PinproxyTLS

/// Why a policy refused a server, for programs (``reason``) and for people (``title``, ``details``). A class: every
/// verdict has room for it, and hardly any has one.
package final class Refusal: Error, Sendable, CustomStringConvertible {
    package enum Reason: Sendable {
        /// The chain isn't valid to the trust anchors, or is for another name.
        case trust(VerificationFailure)
        /// Not valid to the pinned certificates alone.
        case pinnedAnchors(VerificationFailure)
        /// No certificate of the chain matches a pin.
        case pinMismatch
        /// The policy can't accept any server.
        case contradiction(SecurityPolicy.Contradiction)
        /// Valid, but its authority doesn't confirm it.
        case status(StatusFailure)
        /// Valid, but not known to be in public logs.
        case transparency(TransparencyFailure)
        case expired(PinExpiry)
    }

    package let reason: Reason
    package let host: ServerName?
    /// The verified chain, if any.
    package let chain: VerifiedChain?
    package let presented: PresentedChain
    let policy: SecurityPolicy

    init(
        reason: Reason, host: ServerName?, policy: SecurityPolicy, chain: VerifiedChain?,
        presented: PresentedChain
    ) {
        self.reason = reason
        self.host = host
        self.chain = chain
        self.presented = presented
        self.policy = policy
    }

    /// Whether the pins failed: the log says `pin.mismatch` rather than `trust.failure`.
    package var isPinFailure: Bool {
        switch reason {
        case .pinMismatch, .pinnedAnchors, .expired: true
        case .trust, .contradiction, .status, .transparency: false
        }
    }

    /// Whether a certificate was revoked, by a list or a stapled OCSP response.
    package var isRevocation: Bool {
        switch reason {
        case .trust(let failure), .pinnedAnchors(let failure): failure.reason == .revoked
        case .status(.response(let failure)): failure.isRevocation
        case .pinMismatch, .contradiction, .status, .transparency, .expired: false
        }
    }

    /// The X509_V_ERR_… code for the alert: the chain's own, else CERT_REJECTED for `bad_certificate`.
    package var x509Code: Int32 {
        switch reason {
        case .trust(let failure), .pinnedAnchors(let failure): failure.x509Code
        case .pinMismatch, .contradiction, .expired, .status, .transparency: 28
        }
    }

    /// One short line, used as a reason phrase.
    package var title: String {
        let name = host.map { " for \($0)" } ?? ""
        return switch reason {
        case .trust(let failure): "Certificate verification failure\(name): \(failure.reason.cause)"
        case .status where isRevocation:
            "Certificate verification failure\(name): revoked"
        case .status: "Certificate verification failure\(name): no good OCSP response"
        case .transparency: "Certificate verification failure\(name): not in public logs"
        case .pinnedAnchors, .pinMismatch: "Certificate pinning failure\(name)"
        case .contradiction: "Contradictory security policy\(name)"
        case .expired: "Expired pins\(name)"
        }
    }

    package var description: String { title }
}

extension VerificationFailure.Reason {
    var cause: String {
        switch self {
        case .expired: "expired"
        case .notYetValid: "not yet valid"
        case .nameMismatch: "wrong host name"
        case .selfSigned: "self-signed"
        case .untrustedRoot: "untrusted root"
        case .unknownIssuer: "unknown issuer"
        case .weakKey: "weak key"
        case .weakSignature: "weak signature"
        case .badSignature: "bad signature"
        case .notAnAuthority: "issuer is not a CA"
        case .pathTooLong: "chain too long"
        case .wrongPurpose: "not a server certificate"
        case .nameConstraint: "excluded by name constraints"
        case .distrusted: "distrusted"
        case .revoked: "revoked"
        case .revocationUnknown: "no current CRL"
        case .lifetimeTooLong: "valid for too long"
        case .malformed: "malformed certificate"
        case .other: "invalid certificate"
        }
    }

    /// Advice for the reader.
    var advice: String {
        switch self {
        case .expired:
            "The server's operator has to renew it. If it was renewed, check this machine's clock."
        case .notYetValid: "Check this machine's clock; else the server's operator installed it too early."
        case .nameMismatch:
            "Check the spelling of the host. If it is right, the server's operator has to add the name to the "
                + "certificate (subjectAltName; a CN alone is not enough)."
        case .selfSigned, .untrustedRoot:
            "If it is a private authority of yours, add its root to upstream.trust in pinproxy.yaml, or pin the "
                + "certificate itself (pinning: certificate with allow_invalid_certificates: true)."
        case .unknownIssuer:
            "Most often the server doesn't send its intermediate certificate: its operator has to configure the "
                + "whole chain. For a private authority, add its root to upstream.trust in pinproxy.yaml."
        case .weakKey, .weakSignature:
            "The server's operator has to replace it: RSA below 2048 bits and SHA-1 are not accepted."
        case .badSignature, .malformed, .notAnAuthority, .pathTooLong, .nameConstraint:
            "The chain is broken or forged; tell the server's operator. Don't work around it."
        case .wrongPurpose:
            "The certificate was issued for something else (extendedKeyUsage without serverAuth); the server's "
                + "operator has to get one for servers."
        case .distrusted: "The owner of the trust anchors has withdrawn its trust; don't work around it."
        case .revoked:
            "Its authority has withdrawn it, perhaps because the key was stolen: the server's operator has to replace "
                + "it. Don't work around it."
        case .revocationUnknown:
            "Put the issuer's current CRL into the file that crl_files names: it is reloaded automatically."
        case .lifetimeTooLong:
            """
            The server's operator has to get a certificate for a shorter time; or raise max_leaf_lifetime for this \
            host.
            """
        case .other: "The line above names the fault; the server's operator has to correct the chain."
        }
    }
}
