import CPinproxyOpenSSL
import CPinproxyShims

/// Unverified evidence beside a server's chain, for `VerifiedChain.checkStatus` and `.checkTransparency`.
package struct PeerEvidence: Sendable, Hashable {
    /// A stapled OCSP response (RFC 6066 section 8) as DER.
    package let ocspResponse: [UInt8]?
    /// Signed certificate timestamps of the TLS extension (RFC 6962 section 3.3.1) alone, each as encoded there.
    package let timestamps: [[UInt8]]

    package init(ocspResponse: [UInt8]? = nil, timestamps: [[UInt8]] = []) {
        self.ocspResponse = ocspResponse
        self.timestamps = timestamps
    }

    /// The evidence received on a connection, after the server's certificate.
    init(of connection: OpaquePointer) {
        var start: UnsafePointer<UInt8>?
        let count = shim_SSL_get_status_response(connection, &start)
        ocspResponse = count > 0 ? start.map { [UInt8](UnsafeBufferPointer(start: $0, count: count)) } : nil
        timestamps = Self.timestamps(of: connection, beside: ocspResponse)
    }

    private static func timestamps(of connection: OpaquePointer, beside response: [UInt8]?) -> [[UInt8]] {
        guard SSL_ct_is_enabled(connection) == 1 else { return [] }
        // OpenSSL parses them with those of the certificate and the response, and owns them. An unreadable list counts
        // as none, as does one beside a response that must not be parsed.
        if let response, (try? CertificateLimits.check(statusResponse: response.span)) == nil { return [] }
        defer { OpenSSLErrorQueue.clear() }
        guard let list = SSL_get0_peer_scts(connection) else { return [] }
        // OpenSSL has them in reverse order.
        return (0..<max(OPENSSL_sk_num(list), 0)).reversed().compactMap { index in
            guard let timestamp = OPENSSL_sk_value(list, index).map({ OpaquePointer($0) }),
                SCT_get_source(timestamp) == SCT_SOURCE_TLS_EXTENSION
            else { return nil }
            return DER.bytes { i2o_SCT(timestamp, $0) }
        }
    }
}
