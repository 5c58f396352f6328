import CPinproxyOpenSSL
import Glibc

/// Why no verified chain could be built: the first fault, and where.
package struct VerificationFailure: Error, Sendable, CustomStringConvertible {
    /// OpenSSL's X509_V_ERR_… code, which also selects the alert.
    package let x509Code: CInt
    /// 0 is the leaf.
    package let depth: Int
    package let certificate: Certificate?
    package let reason: Reason
    /// One human-readable line, e.g. `certificate expired 2024-01-02 (CN=api.example.com)`.
    package let message: String

    package var description: String { message }

    package enum Reason: Sendable, Hashable, CaseIterable {
        case expired
        case notYetValid
        case nameMismatch
        /// The leaf is self-signed and no anchor.
        case selfSigned
        case untrustedRoot
        /// An issuer is neither an anchor nor sent by the peer.
        case unknownIssuer
        case weakKey
        case weakSignature
        case badSignature
        /// An issuer isn't a CA by basicConstraints, or lacks keyCertSign.
        case notAnAuthority
        /// More issuers than a pathlen, or the limit, allows.
        case pathTooLong
        case wrongPurpose
        case nameConstraint
        case distrusted
        /// It is on its issuer's revocation list.
        case revoked
        /// Its issuer's revocation list is stale, or otherwise unreliable.
        case revocationUnknown
        case lifetimeTooLong
        /// Violates RFC 5280 otherwise; the message says how.
        case malformed
        /// Anything else, in OpenSSL's words.
        case other
    }
}

extension VerificationFailure {
    static let outOfMemory = VerificationFailure(
        code: X509_V_ERR_OUT_OF_MEM, depth: 0, certificate: nil,
        options: VerificationOptions(name: nil, time: 0))

    init(code: CInt, depth: Int, certificate: Certificate?, options: VerificationOptions) {
        x509Code = code
        self.depth = depth
        self.certificate = certificate
        reason = Reason(code)
        message = Self.message(code: code, reason: reason, depth: depth, certificate: certificate, options: options)
    }

    init(code: CInt, depth: Int, certificate: Certificate?, message: String) {
        self.init(code: code, depth: depth, certificate: certificate, reason: Reason(code), message: message)
    }

    private init(code: CInt, depth: Int, certificate: Certificate?, reason: Reason, message: String) {
        x509Code = code
        self.depth = depth
        self.certificate = certificate
        self.reason = reason
        self.message = message
    }

    /// This failure with an addition to the message.
    func adding(_ text: String) -> VerificationFailure {
        VerificationFailure(
            code: x509Code, depth: depth, certificate: certificate, reason: reason, message: "\(message); \(text)")
    }

    static func role(_ depth: Int) -> String { depth == 0 ? "certificate" : "issuing certificate" }

    /// Shortened: a subject may be as long as a certificate.
    static func subject(of certificate: Certificate) -> String {
        let subject = certificate.subject
        return subject.isEmpty ? "no subject" : subject.count > 200 ? subject.prefix(200) + "…" : subject
    }

    private static func message(
        code: CInt, reason: Reason, depth: Int, certificate: Certificate?, options: VerificationOptions
    ) -> String {
        guard let certificate else { return openSSLText(code) }
        let who = subject(of: certificate)
        let role = role(depth)
        let key = certificate.keyDescription
        return switch reason {
        case .expired: "\(role) expired \(CalendarDate(certificate.notAfter)) (\(who))"
        case .notYetValid: "\(role) is not valid before \(CalendarDate(certificate.notBefore)) (\(who))"
        case .nameMismatch: mismatch(certificate, options)
        case .selfSigned: "self-signed certificate that is not among the trust anchors (\(who))"
        case .untrustedRoot: "the chain ends at a root that is not among the trust anchors (\(who))"
        case .unknownIssuer:
            """
            issuer of \(who) is unknown: \(certificate.issuer.prefix(200)) is neither among the trust anchors nor sent \
            by the server
            """
        case .weakKey: "\(role)'s key is too weak: \(key) (\(who))"
        case .weakSignature: "\(role)'s signature uses a weak digest (\(who))"
        case .badSignature: "\(role)'s signature is not by its issuer (\(who))"
        case .notAnAuthority: "a certificate that may not issue others issued one: \(openSSLText(code)) (\(who))"
        case .pathTooLong: "chain is longer than allowed: \(openSSLText(code)) (\(who))"
        case .wrongPurpose: "\(role) is not for TLS servers: \(openSSLText(code)) (\(who))"
        case .nameConstraint: "\(role) breaks an issuer's name constraints: \(openSSLText(code)) (\(who))"
        case .distrusted: "\(role) is marked as distrusted: \(openSSLText(code)) (\(who))"
        case .lifetimeTooLong: "\(role) is valid for too long (\(who))"
        case .malformed: "\(role) breaks RFC 5280: \(openSSLText(code)) (\(who))"
        case .revoked, .revocationUnknown, .other: "\(openSSLText(code)) (\(who))"
        }
    }

    private static func mismatch(_ certificate: Certificate, _ options: VerificationOptions) -> String {
        let names = certificate.dnsNames + certificate.ipAddresses
        let wanted = options.name.map { " is not for \($0)" } ?? " has another name"
        if case .refused(let suffix) = options.wildcards,
            let wildcard = names.first(where: { $0.lowercased() == "*.\(suffix)" })
        {
            return "certificate\(wanted): its wildcard \(wildcard) covers the whole of a public suffix, under which "
                + "anybody can have a name, and matches nothing"
        }
        guard !names.isEmpty else {
            return "certificate\(wanted): it has no subjectAltName with a host in it (\(subject(of: certificate)))"
        }
        let listed = names.prefix(8).joined(separator: ", ")
        let more = names.count > 8 ? " and \(names.count - 8) more" : ""
        return "certificate\(wanted); it is for \(listed)\(more)"
    }

    static func openSSLText(_ code: CInt) -> String {
        X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
    }
}

extension VerificationFailure.Reason {
    init(_ code: CInt) {
        self =
            switch code {
            case X509_V_ERR_CERT_HAS_EXPIRED: .expired
            case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid
            case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .nameMismatch
            case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: .selfSigned
            case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: .untrustedRoot
            case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
                X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
                .unknownIssuer
            case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL: .weakKey
            case X509_V_ERR_CA_MD_TOO_WEAK: .weakSignature
            case X509_V_ERR_CERT_SIGNATURE_FAILURE: .badSignature
            case X509_V_ERR_INVALID_CA, X509_V_ERR_KEYUSAGE_NO_CERTSIGN, X509_V_ERR_INVALID_NON_CA,
                X509_V_ERR_NO_ISSUER_PUBLIC_KEY:
                .notAnAuthority
            case X509_V_ERR_PATH_LENGTH_EXCEEDED, X509_V_ERR_CERT_CHAIN_TOO_LONG: .pathTooLong
            case X509_V_ERR_INVALID_PURPOSE: .wrongPurpose
            case X509_V_ERR_PERMITTED_VIOLATION, X509_V_ERR_EXCLUDED_VIOLATION: .nameConstraint
            case X509_V_ERR_CERT_REJECTED, X509_V_ERR_CERT_UNTRUSTED: .distrusted
            case X509_V_ERR_CERT_REVOKED: .revoked
            case _ where Self.unusableListCodes.contains(code): .revocationUnknown
            default: Self.malformedCodes.contains(code) ? .malformed : .other
            }
    }

    private static let unusableListCodes: Set<CInt> = [
        X509_V_ERR_CRL_SIGNATURE_FAILURE, X509_V_ERR_CRL_NOT_YET_VALID, X509_V_ERR_CRL_HAS_EXPIRED,
        X509_V_ERR_KEYUSAGE_NO_CRL_SIGN, X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION,
    ]

    private static let malformedCodes: Set<CInt> = [
        X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY, X509_V_ERR_ERROR_IN_CERT_NOT_BEFORE_FIELD,
        X509_V_ERR_ERROR_IN_CERT_NOT_AFTER_FIELD, X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE,
        X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION, X509_V_ERR_INVALID_EXTENSION,
        X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE, X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX,
        X509_V_ERR_UNSUPPORTED_NAME_SYNTAX, X509_V_ERR_SUBTREE_MINMAX, X509_V_ERR_EC_KEY_EXPLICIT_PARAMS,
        X509_V_ERR_SIGNATURE_ALGORITHM_MISMATCH, X509_V_ERR_SIGNATURE_ALGORITHM_INCONSISTENCY,
        X509_V_ERR_PATHLEN_INVALID_FOR_NON_CA, X509_V_ERR_PATHLEN_WITHOUT_KU_KEY_CERT_SIGN,
        X509_V_ERR_KU_KEY_CERT_SIGN_INVALID_FOR_NON_CA, X509_V_ERR_ISSUER_NAME_EMPTY,
        X509_V_ERR_SUBJECT_NAME_EMPTY, X509_V_ERR_MISSING_AUTHORITY_KEY_IDENTIFIER,
        X509_V_ERR_MISSING_SUBJECT_KEY_IDENTIFIER, X509_V_ERR_EMPTY_SUBJECT_ALT_NAME,
        X509_V_ERR_EMPTY_SUBJECT_SAN_NOT_CRITICAL, X509_V_ERR_CA_BCONS_NOT_CRITICAL,
        X509_V_ERR_AUTHORITY_KEY_IDENTIFIER_CRITICAL, X509_V_ERR_SUBJECT_KEY_IDENTIFIER_CRITICAL,
        X509_V_ERR_CA_CERT_MISSING_KEY_USAGE, X509_V_ERR_EXTENSIONS_REQUIRE_VERSION_3,
    ]
}

/// An instant's day in UTC: `2027-06-30`.
package struct CalendarDate: Sendable, CustomStringConvertible {
    package let description: String

    package init(_ time: UnixTime) {
        var parts = tm()
        var seconds = time_t(time)
        guard gmtime_r(&seconds, &parts) != nil else {
            description = "at an unreadable date"
            return
        }
        let (year, month, day) = (Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday))
        description = "\(year)-\(month < 10 ? "0" : "")\(month)-\(day < 10 ? "0" : "")\(day)"
    }
}
