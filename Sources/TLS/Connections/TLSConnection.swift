import COpenSSL
import CShims
import Glibc

/// One TLS connection over a connected, non-blocking socket, which must stay open as long as this lives.
///
/// Not thread-safe. An operation that can't go on says which readiness it waits for, and is then called again.
package struct TLSConnection: ~Copyable {
    private let state: ConnectionState
    // The state's own pointer, at hand without a load through the object.
    private let ssl: OpaquePointer
    private var isBroken = false

    /// A connection that the proxy begins. No closure may touch the connection.
    ///
    /// - Parameters:
    ///   - serverName: sent as SNI if it is a DNS name (RFC 6066 has no SNI for addresses); not checked here.
    ///   - session: to be resumed if the server still wants it.
    ///   - verify: called within `handshake()`, once, when the server's certificates have arrived, never for a resumed
    ///     session: it decides alone.
    ///   - confirm: called within `handshake()` after each `verify` that accepted, with the evidence that the context
    ///     asked for, before any data is sent. Rejecting always sends bad_certificate_status_response.
    ///   - onSession: called within `handshake()` or `read(into:)`, once for each resumable session.
    package init(
        client context: TLSClientContext, descriptor: CInt, serverName: ServerName, session: TLSSession? = nil,
        verify: @escaping (PresentedChain) -> PeerVerdict, confirm: ((PeerEvidence) -> PeerVerdict)? = nil,
        onSession: ((TLSSession) -> Void)? = nil
    ) throws(TLSError) {
        let state = try ConnectionState(
            client: context, descriptor: descriptor, verify: verify, confirm: confirm, onSession: onSession)
        let ssl = state.ssl
        if case .dns(let name) = serverName, shim_SSL_set_server_name(ssl, name) != 1 {
            throw .setup("\(name) can't be sent as SNI")
        }
        if let session, SSL_set_session(ssl, session.pointer) != 1 { OpenSSLErrorQueue.clear() }
        SSL_set_connect_state(ssl)
        self.state = state
        self.ssl = ssl
    }

    /// A connection that the proxy accepts.
    ///
    /// - Parameters:
    ///   - identity: presented to the client; nil: the context's own.
    ///   - ticketContext: up to 32 bytes that tickets are bound to. A ticket of another context isn't resumed.
    ///   - alreadyReceived: what was read from the socket before TLS was expected.
    package init(
        server context: TLSServerContext, descriptor: CInt, identity: Identity? = nil, ticketContext: [UInt8],
        alreadyReceived: [UInt8] = []
    ) throws(TLSError) {
        guard identity != nil || context.hasIdentity else { throw TLSError(.setup, "there is no certificate to show") }
        let state = try ConnectionState(server: context, descriptor: descriptor)
        let ssl = state.ssl
        guard SSL_set_session_id_context(ssl, ticketContext, UInt32(clamping: ticketContext.count)) == 1 else {
            throw .setup("a ticket context has at most 32 bytes")
        }
        if let identity {
            let done = SSL_use_cert_and_key(
                ssl, identity.leaf.pointer, identity.key.pointer, identity.issuers.pointer, 1)
            guard done == 1 else { throw .setup("certificate of \(identity.leaf.subject) can't be used") }
        }
        if !alreadyReceived.isEmpty { try state.readFirst(alreadyReceived) }
        SSL_set_accept_state(ssl)
        self.state = state
        self.ssl = ssl
    }

    package mutating func handshake() -> TLSResult<Void> {
        OpenSSLErrorQueue.clear()
        state.budget.begin()
        let done = SSL_do_handshake(ssl)
        // Before anything else can change it.
        let systemError = errno
        state.budget.end()
        if state.objection == nil, state.budget.isSpent {
            isBroken = true
            return .failed(.handshakeTooCostly(limit: state.budget.limit))
        }
        guard done == 1 else { return failure(done, systemError) }
        SSL_set_default_read_buffer_len(ssl, ContextHandle.readAhead)
        // Certificates come in handshakes alone; the callback would be called for every record.
        SSL_set_msg_callback(ssl, nil)
        return .complete(())
    }

    /// Reads at most one record; the count is more than 0. Call again at once only while `hasPending` is true.
    package mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> TLSResult<Int> {
        OpenSSLErrorQueue.clear()
        let count = SSL_read(ssl, buffer.baseAddress, CInt(clamping: buffer.count))
        return count > 0 ? .complete(Int(count)) : failure(count)
    }

    /// Writes a part of the bytes, mostly one record. After `wantsWrite` the next write begins with the same bytes.
    package mutating func write(_ bytes: UnsafeRawBufferPointer) -> TLSResult<Int> {
        guard bytes.count > 0 else { return .complete(0) }
        OpenSSLErrorQueue.clear()
        let count = SSL_write(ssl, bytes.baseAddress, CInt(clamping: bytes.count))
        return count > 0 ? .complete(Int(count)) : failure(count)
    }

    /// Sends close_notify; reading may go on. Without a working TLS connection nothing is sent, which is complete.
    package mutating func shutdown() -> TLSResult<Void> {
        guard !isBroken, SSL_is_init_finished(ssl) == 1 else { return .complete(()) }
        OpenSSLErrorQueue.clear()
        let done = SSL_shutdown(ssl)
        return done >= 0 ? .complete(()) : failure(done)
    }

    /// Frees empty record buffers. Reading a session ticket would otherwise keep 16 KiB until the next write.
    package mutating func releaseBuffers() { _ = SSL_free_buffers(ssl) }

    /// True if data has arrived that a read would find without a system call, or a part of a record.
    package var hasPending: Bool { SSL_has_pending(ssl) == 1 }

    /// The SNI of this connection's ClientHello, on the server's side once the handshake has begun.
    package var clientServerName: String? { state.clientServerName }

    /// True if the handshake took up an earlier session, so that no certificate was shown.
    package var isResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// The version in use; what we would like best before the handshake has settled it.
    package var version: TLSVersion {
        switch SSL_version(ssl) {
        case TLS1_VERSION: .tls10
        case TLS1_1_VERSION: .tls11
        case TLS1_2_VERSION: .tls12
        default: .tls13
        }
    }

    /// OpenSSL's name of the cipher suite, e.g. `TLS_AES_128_GCM_SHA256`; empty before it is chosen.
    package var cipherName: String {
        guard let cipher = SSL_get_current_cipher(ssl) else { return "" }
        return String(cString: SSL_CIPHER_get_name(cipher))
    }

    /// On the client's side: true once the server's signature proved its key, even if it ends the handshake later.
    package var isServerKeyProved: Bool {
        var kind: CInt = 0
        return SSL_get_peer_signature_type_nid(ssl, &kind) == 1
    }

    /// What the server asked for when it asked for a certificate of ours; nil if it didn't, and on the server's side.
    package var certificateRequest: ClientCertificateRequest? {
        state.isCertificateRequested ? ClientCertificateRequest(of: ssl) : nil
    }

    /// Why the server ended the connection over a client certificate, by that certificate's dates at `time`.
    package func certificateRefusal(at time: UnixTime) -> ClientCertificateRefusal? {
        guard let alert = state.fatalAlert, let request = certificateRequest else { return nil }
        return ClientCertificateRefusal(alert: alert, to: request, at: time)
    }

    package var alpn: String? {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &count)
        guard let name, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
    }

    /// What the server sent in this handshake; nil on a resumed one, and on the server's side.
    package var peerChain: PresentedChain? { state.presented }

    /// - Parameter systemError: `errno` after the operation.
    private mutating func failure<Value>(_ returned: CInt, _ systemError: CInt = errno) -> TLSResult<Value> {
        switch SSL_get_error(ssl, returned) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .closed
        case SSL_ERROR_SYSCALL:
            isBroken = true
            return .failed(state.noting(systemError == 0 ? .unexpectedEOF : .system(systemError)))
        default:
            isBroken = true
            let error = TLSError.fromQueue(objection: state.objection, rejected: state.rejected)
                .naming(state.refusedProtocols)
            if case .alertReceived(let alert) = error.kind { state.fatalAlert = alert }
            return .failed(state.noting(error))
        }
    }
}
