import CPinproxyOpenSSL

/// A server's CertificateRequest (RFC 8446 section 4.3.2, RFC 5246 section 7.4.4).
package struct ClientCertificateRequest: Sendable {
    /// Subjects of the accepted authorities, as sent; empty: any.
    package let acceptableIssuers: [String]
    /// The certificate presented, if one is configured.
    package let shown: Certificate?

    private static let limit = 20

    /// Call it only after `connection` was asked.
    init(of connection: OpaquePointer) {
        var names: [String] = []
        if let list = SSL_get0_peer_CA_list(connection) {
            for index in 0..<min(OPENSSL_sk_num(list), CInt(Self.limit)) {
                guard let name = OPENSSL_sk_value(list, index) else { continue }
                names.append(Certificate.line(OpaquePointer(name)))
            }
        }
        acceptableIssuers = names
        shown = SSL_get_certificate(connection).map { Certificate(sharing: $0) }
    }
}

/// A server requested a client certificate and ended the connection over the answer. In TLS 1.3 the alert comes after
/// the client's handshake, instead of the first response.
package struct ClientCertificateRefusal: Error, Sendable {
    package let request: ClientCertificateRequest
    /// The alert's number (RFC 8446 section 6).
    package let alert: UInt8
    /// E.g. `certificate expired`.
    package var alertName: String { TLSAlert.name(alert) }
    package let reason: Reason

    /// By the alert and the certificate's own dates.
    package enum Reason: Sendable, Hashable {
        case missing
        case expired
        case notYetValid
        /// Expired for the server, though not by this machine's clock.
        case expiredByServersClock
        case unknownIssuer
        case revoked
        case notAccepted
    }

    private static func reason(_ alert: UInt8, _ shown: Certificate?, at time: UnixTime) -> Reason {
        guard let shown else { return .missing }
        if time >= shown.notAfter { return .expired }
        if time < shown.notBefore { return .notYetValid }
        return switch CInt(alert) {
        case SSL3_AD_CERTIFICATE_EXPIRED: .expiredByServersClock
        case TLS1_AD_UNKNOWN_CA: .unknownIssuer
        case SSL3_AD_CERTIFICATE_REVOKED: .revoked
        default: .notAccepted
        }
    }

    /// Nil for an unrelated alert.
    init?(alert: UInt8, to request: ClientCertificateRequest, at time: UnixTime) {
        guard Self.alerts.contains(CInt(alert)) else { return nil }
        self.request = request
        self.alert = alert
        reason = Self.reason(alert, request.shown, at: time)
    }

    /// Alerts for a missing or rejected certificate; TLS 1.2 has handshake_failure for a missing one.
    private static let alerts: Set<CInt> = [
        SSL3_AD_HANDSHAKE_FAILURE, SSL3_AD_NO_CERTIFICATE, SSL3_AD_BAD_CERTIFICATE, SSL3_AD_UNSUPPORTED_CERTIFICATE,
        SSL3_AD_CERTIFICATE_REVOKED, SSL3_AD_CERTIFICATE_EXPIRED, SSL3_AD_CERTIFICATE_UNKNOWN, TLS1_AD_UNKNOWN_CA,
        TLS1_AD_ACCESS_DENIED, TLS1_AD_DECRYPT_ERROR, TLS13_AD_CERTIFICATE_REQUIRED,
    ]
}
