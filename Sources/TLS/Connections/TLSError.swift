import CPinproxyOpenSSL
import Glibc

package struct TLSError: Error, Sendable, CustomStringConvertible {
    package let kind: Kind
    /// One human-readable line.
    package let message: String
    /// OpenSSL's packed error code, for the log; 0 where OpenSSL gave none.
    package let openSSLCode: UInt
    /// The server answered in HTTP or HTML, or closed cleanly without a byte, as plain HTTP servers do.
    package internal(set) var mayBePlainHTTP = false

    package var description: String { message }

    package enum Kind: Sendable, Hashable {
        /// The peer's alert (RFC 8446 section 6).
        case alertReceived(UInt8)
        /// The connection ended without close_notify: data may be missing.
        case unexpectedEOF
        /// A system call failed with this errno.
        case system(CInt)
        /// The `verify` closure refused the peer's certificates.
        case certificateRejected
        /// The peer's certificates weren't parsed: too many, or too costly.
        case certificateTooCostly
        case handshakeTooCostly
        case notTLS
        case noSharedVersion
        /// No common cipher suite, group or signature algorithm.
        case noSharedParameters
        /// No common application protocol (RFC 7301 section 3.2).
        case noSharedApplicationProtocol
        case protocolError
        /// A local failure: bad configuration, or no memory.
        case setup
    }

    init(_ kind: Kind, _ message: String, openSSLCode: UInt = 0) {
        self.kind = kind
        self.message = message
        self.openSSLCode = openSSLCode
    }

    package var isOfCertificate: Bool {
        switch kind {
        case .certificateRejected, .certificateTooCostly: true
        default: false
        }
    }

    /// This error with the offered protocols, if it is about them.
    func naming(_ offered: [String]) -> TLSError {
        guard kind == .noSharedApplicationProtocol, !offered.isEmpty else { return self }
        return TLSError(
            kind, "the peer offers \(offered.joined(separator: ", ")) by ALPN; no protocol in common",
            openSSLCode: openSSLCode)
    }

    /// A local failure, from the error queue.
    static func setup(_ what: String) -> TLSError {
        let code = OpenSSLErrorQueue.take()
        return TLSError(.setup, "\(what): \(OpenSSLErrorQueue.reason(of: code))", openSSLCode: code)
    }

    static func system(_ code: CInt) -> TLSError {
        TLSError(.system(code), String(cString: strerror(code)))
    }

    static let unexpectedEOF = TLSError(
        .unexpectedEOF, "the peer closed the connection without ending TLS (no close_notify)")

    static func handshakeTooCostly(limit: UInt64) -> TLSError {
        TLSError(
            .handshakeTooCostly,
            "the handshake took more processor time than is allowed (\(limit / 1_000_000) ms): the peer's certificates "
                + "or keys cost too much")
    }

    /// The failure of SSL_ERROR_SSL, or the `objection` to the peer's certificates; empties the queue.
    static func fromQueue(objection: String?, rejected: Bool) -> TLSError {
        let code = OpenSSLErrorQueue.take()
        if let objection { return TLSError(.certificateTooCostly, objection, openSSLCode: code) }
        let reason = Int32(truncatingIfNeeded: code & UInt(ERR_REASON_MASK))
        let text = OpenSSLErrorQueue.reason(of: code)
        let isSSL = (code >> UInt(ERR_LIB_OFFSET)) & UInt(ERR_LIB_MASK) == UInt(ERR_LIB_SSL)
        if rejected { return TLSError(.certificateRejected, "the peer's certificate was refused", openSSLCode: code) }
        guard isSSL else { return TLSError(.protocolError, text, openSSLCode: code) }
        if reason >= SSL_AD_REASON_OFFSET, reason <= SSL_AD_REASON_OFFSET + 255 {
            let alert = UInt8(reason - SSL_AD_REASON_OFFSET)
            return TLSError(.alertReceived(alert), TLSAlert.message(alert), openSSLCode: code)
        }
        return switch reason {
        case SSL_R_UNEXPECTED_EOF_WHILE_READING: .unexpectedEOF
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST,
            SSL_R_PACKET_LENGTH_TOO_LONG:
            TLSError(.notTLS, "the peer does not speak TLS on this port (\(text))", openSSLCode: code)
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_VERSION_TOO_LOW:
            TLSError(
                .noSharedVersion, "the peer offers no TLS version that is accepted here (\(text))",
                openSSLCode: code)
        case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SHARED_GROUPS, SSL_R_NO_SUITABLE_KEY_SHARE,
            SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS,
            SSL_R_WRONG_CURVE, SSL_R_WRONG_SIGNATURE_TYPE, SSL_R_DH_KEY_TOO_SMALL:
            TLSError(
                .noSharedParameters,
                "the peer offers no cipher suite, group or signature that is accepted here (\(text))",
                openSSLCode: code)
        case SSL_R_EXCESSIVE_MESSAGE_SIZE:
            TLSError(
                .protocolError,
                "the peer sends more than is accepted in a handshake, such as 100 KiB of certificates (\(text))",
                openSSLCode: code)
        case SSL_R_NO_APPLICATION_PROTOCOL:
            TLSError(
                .noSharedApplicationProtocol, "the peer offers no application protocol in common",
                openSSLCode: code)
        default: TLSError(.protocolError, "TLS protocol error: \(text)", openSSLCode: code)
        }
    }
}

/// Advice for the alerts of RFC 8446 section 6.
enum TLSAlert {
    static func message(_ alert: UInt8) -> String {
        "the peer ended the handshake or connection with TLS alert \(alert) (\(name(alert)))\(advice(alert))"
    }

    /// E.g. `certificate expired`.
    static func name(_ alert: UInt8) -> String {
        switch CInt(alert) {
        // Not known to OpenSSL 3.0's function.
        case TLS13_AD_MISSING_EXTENSION: "missing extension"
        case TLS13_AD_CERTIFICATE_REQUIRED: "certificate required"
        default: SSL_alert_desc_string_long(CInt(alert)).map { String(cString: $0) } ?? "unknown"
        }
    }

    private static func advice(_ alert: UInt8) -> String {
        switch CInt(alert) {
        case SSL3_AD_BAD_CERTIFICATE, TLS1_AD_UNKNOWN_CA, SSL3_AD_CERTIFICATE_UNKNOWN:
            ": it does not trust the certificate that it was shown, or the authority that issued it"
        case SSL3_AD_CERTIFICATE_EXPIRED: ": it takes the certificate as expired; is its clock right?"
        case SSL3_AD_HANDSHAKE_FAILURE, TLS1_AD_INSUFFICIENT_SECURITY:
            ": it accepts none of the offered ciphers, or requires something else that was not offered"
        case TLS1_AD_PROTOCOL_VERSION: ": it supports no TLS version that is accepted here"
        case TLS1_AD_UNRECOGNIZED_NAME: ": it serves no host of that name"
        case TLS1_AD_NO_APPLICATION_PROTOCOL: ": it supports no application protocol that was offered"
        case TLS13_AD_CERTIFICATE_REQUIRED: ": it requires a client certificate"
        default: ""
        }
    }
}
