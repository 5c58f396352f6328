import CPinproxyOpenSSL
import CPinproxyShims

/// Settings of outgoing connections, shared by all threads: TLS 1.2 with ECDHE and AEAD or TLS 1.3, as in browsers; no
/// SHA-1 signature, no renegotiation. The extended master secret (RFC 7627) is optional.
package final class TLSClientContext: Sendable {
    package struct Options: Sendable {
        /// Anything below TLS 1.2 is raised to it.
        package var versions = TLSVersion.tls12...TLSVersion.tls13
        /// ALPN offer, best first. Empty: no ALPN.
        package var applicationProtocols = ["http/1.1"]
        package var clientIdentity: Identity?
        /// Ask servers to staple an OCSP response (status_request, RFC 6066 section 8).
        package var requestsStatus = false
        /// Ask for certificate timestamps (RFC 6962 section 3.3.1), and an OCSP response, which may carry some.
        package var requestsTimestamps = false
        /// Processor time that one handshake may take, verification included.
        package var handshakeNanoseconds = HandshakeBudget.usual

        package init() {}
    }

    let handle: ContextHandle
    let asksForEvidence: Bool

    package init(options: Options = Options()) throws(TLSError) {
        handle = try ContextHandle(
            TLS_client_method(), versions: options.versions, handshakeNanoseconds: options.handshakeNanoseconds)
        asksForEvidence = options.requestsStatus || options.requestsTimestamps
        let context = handle.pointer
        let protocols = try ApplicationProtocols(options.applicationProtocols)
        if !protocols.wire.isEmpty {
            // Unlike its siblings, this function returns 0 on success.
            guard SSL_CTX_set_alpn_protos(context, protocols.wire, UInt32(protocols.wire.count)) == 0 else {
                throw .setup("ALPN names not accepted")
            }
        }
        if let identity = options.clientIdentity { try handle.use(identity) }
        SSL_CTX_set_msg_callback(context) { isSent, version, type, bytes, count, connection, _ in
            let message = UnsafeRawBufferPointer(start: bytes, count: count)
            ConnectionState.sawMessage(
                isSent: isSent != 0, version: version, type: type, bytes: message, on: connection)
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_verify_callback(context, { store, _ in ConnectionState.verify(store) }, nil)
        SSL_CTX_set_cert_cb(context, { connection, _ in ConnectionState.certificateRequested(connection) }, nil)
        if asksForEvidence { try askForEvidence(timestamps: options.requestsTimestamps) }
        // Sessions go to their connection's closure; OpenSSL keeps none.
        shim_SSL_CTX_set_session_cache_mode(context, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
        SSL_CTX_sess_set_new_cb(context) { connection, session in
            ConnectionState.received(session, on: connection)
        }
    }

    private func askForEvidence(timestamps: Bool) throws(TLSError) {
        let context = handle.pointer
        guard shim_SSL_CTX_request_status(context) == 1,
            shim_SSL_CTX_set_status_callback(context, { connection, _ in ConnectionState.receivedEvidence(connection) })
                == 1
        else { throw .setup("OCSP responses can't be requested") }
        guard timestamps else { return }
        // The callback only makes OpenSSL ask; OpenSSL itself verifies no chain.
        guard SSL_CTX_set_ct_validation_callback(context, { _, _, _ in 1 }, nil) == 1 else {
            throw .setup("certificate timestamps can't be requested")
        }
    }
}
