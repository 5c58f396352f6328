import CPinproxyOpenSSL
import CPinproxyShims
import Glibc

/// One TLS connection over a connected, non-blocking socket that outlives it. Not thread-safe. A blocked operation says
/// which readiness it waits for, and is then repeated.
package struct TLSConnection: ~Copyable {
    private let state: ConnectionState
    // A copy of the state's pointer saves a load.
    private let ssl: OpaquePointer
    /// Set by ``readAhead()``.
    private var input: RecordInput?
    private var isBroken = false

    /// An outgoing connection. No closure may touch the connection.
    /// - Parameters:
    ///   - serverName: sent as SNI if it is a DNS name (RFC 6066 has no SNI for addresses); not verified here.
    ///   - applicationProtocols: the ALPN offer, best first; nil: the context's.
    ///   - session: to resume if the server agrees.
    ///   - verify: called once within `handshake()` with the server's certificates, not for a resumed session. It alone
    ///     decides.
    ///   - confirm: called within `handshake()` after an accepting `verify`, with the requested evidence, before any
    ///     data is sent. Rejecting sends bad_certificate_status_response. After a rejecting `verify` it is called with
    ///     the evidence so far, for the record: its answer is ignored.
    ///   - onSession: called within `handshake()` or `read(into:)`, once for each resumable session.
    package init(
        client context: TLSClientContext, descriptor: CInt, serverName: ServerName,
        applicationProtocols: [String]? = nil, session: TLSSession? = nil,
        verify: @escaping (PresentedChain) -> PeerVerdict, confirm: ((PeerEvidence) -> PeerVerdict)? = nil,
        onSession: ((TLSSession) -> Void)? = nil
    ) throws(TLSError) {
        let state = try ConnectionState(
            client: context, descriptor: descriptor, verify: verify, confirm: confirm, onSession: onSession)
        let ssl = state.ssl
        if case .dns(let name) = serverName, shim_SSL_set_server_name(ssl, name) != 1 {
            throw .setup("\(name) can't be sent as SNI")
        }
        if let applicationProtocols {
            let wire = try ApplicationProtocols(applicationProtocols).wire
            // Unlike its siblings, this function returns 0 on success.
            guard SSL_set_alpn_protos(ssl, wire, UInt32(wire.count)) == 0 else {
                throw .setup("ALPN names not accepted")
            }
        }
        if let session, SSL_set_session(ssl, session.pointer) != 1 { OpenSSLErrorQueue.clear() }
        SSL_set_connect_state(ssl)
        self.state = state
        self.ssl = ssl
    }

    /// An accepted connection.
    /// - Parameters:
    ///   - identity: presented to the client; nil: the context's.
    ///   - ticketContext: up to 32 bytes that tickets are bound to. Other tickets aren't resumed.
    ///   - alreadyReceived: bytes read from the socket before.
    package init(
        server context: TLSServerContext, descriptor: CInt, identity: Identity? = nil, ticketContext: [UInt8],
        alreadyReceived: [UInt8] = []
    ) throws(TLSError) {
        guard identity != nil || context.hasIdentity else {
            throw TLSError(.setup, "there is no certificate to present")
        }
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
        let systemError = errno
        state.budget.end()
        if state.objection == nil, state.budget.isSpent {
            isBroken = true
            return .failed(.handshakeTooCostly(limit: state.budget.limit))
        }
        guard done == 1 else {
            let result: TLSResult<Void> = failure(done, systemError)
            if case .failed = result { discardArrived() }
            return result
        }
        if !OpenSSLLibrary.readsAheadAfterHandshakes {
            SSL_set_default_read_buffer_len(ssl, ContextHandle.readAhead)
        }
        // Only handshakes have certificates; the callback would run for every record.
        SSL_set_msg_callback(ssl, nil)
        return .complete(())
    }

    /// Closing a socket with unread bytes resets the connection, and the peer may lose the alert. OpenSSL leaves
    /// bytes after a record unread (``OpenSSLLibrary/readsAheadAfterHandshakes``).
    private func discardArrived() {
        recv(SSL_get_fd(ssl), nil, ContextHandle.readAhead, CInt(MSG_DONTWAIT | MSG_TRUNC))
    }

    /// Reads many records by one system call, into the caller's memory (``lend(_:)``), for peers that send small ones.
    /// OpenSSL's own buffer moves all remaining bytes to its front for each record.
    ///
    /// Call it after the handshake. Without memory it has no effect.
    package mutating func readAhead() {
        if input == nil { input = state.readAhead() }
    }

    /// Whether reads use the caller's memory.
    package var readsAhead: Bool { input != nil }

    /// Sets the memory for reads, until ``takeBackMemory()``.
    package mutating func lend(_ memory: UnsafeMutableRawBufferPointer) { input?.lend(memory) }

    /// Keeps a copy of unread bytes. There are no such bytes unless the destination was full.
    package mutating func takeBackMemory() { input?.takeBack() }

    /// Reads at most one record; the count is positive. Call again at once only while `hasPending` is true.
    package mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> TLSResult<Int> {
        OpenSSLErrorQueue.clear()
        let count = SSL_read(ssl, buffer.baseAddress, CInt(clamping: buffer.count))
        return count > 0 ? .complete(Int(count)) : failure(count)
    }

    /// Writes some of the bytes, mostly one record. After `wantsWrite` repeat the same bytes.
    package mutating func write(_ bytes: UnsafeRawBufferPointer) -> TLSResult<Int> {
        guard bytes.count > 0 else { return .complete(0) }
        OpenSSLErrorQueue.clear()
        let count = SSL_write(ssl, bytes.baseAddress, CInt(clamping: bytes.count))
        return count > 0 ? .complete(Int(count)) : failure(count)
    }

    /// Sends close_notify; reading may continue. Without a working connection it sends nothing and is complete.
    package mutating func shutdown() -> TLSResult<Void> {
        guard !isBroken, SSL_is_init_finished(ssl) == 1 else { return .complete(()) }
        OpenSSLErrorQueue.clear()
        let done = SSL_shutdown(ssl)
        return done >= 0 ? .complete(()) : failure(done)
    }

    /// Frees empty record buffers: a session ticket would otherwise keep 16 KiB until the next write.
    package mutating func releaseBuffers() { _ = SSL_free_buffers(ssl) }

    /// Whether data, or a part of a record, is buffered.
    package var hasPending: Bool {
        SSL_has_pending(ssl) == 1 || input?.isEmpty == false || state.holdsFirst
    }

    /// The ClientHello's SNI, on the server's side after the handshake's start.
    package var clientServerName: String? { state.clientServerName }

    /// Whether an earlier session was resumed, without certificates.
    package var isResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// The negotiated version; before that the preferred one.
    package var version: TLSVersion {
        switch SSL_version(ssl) {
        case TLS1_VERSION: .tls10
        case TLS1_1_VERSION: .tls11
        case TLS1_2_VERSION: .tls12
        default: .tls13
        }
    }

    /// OpenSSL's name of the cipher suite, e.g. `TLS_AES_128_GCM_SHA256`; empty before the choice.
    package var cipherName: String {
        guard let cipher = SSL_get_current_cipher(ssl) else { return "" }
        return String(cString: SSL_CIPHER_get_name(cipher))
    }

    /// The key exchange's group as TLS names it, e.g. `X25519MLKEM768`, `x25519` or `secp256r1`; nil before the choice.
    package var groupName: String? { shim_SSL_group_name(ssl).map { String(cString: $0) } }

    /// The negotiated parameters so far, even if the handshake failed later; nil before the server's choice.
    package var negotiated: NegotiatedTLS? {
        guard let cipher = SSL_get_current_cipher(ssl) ?? SSL_get_pending_cipher(ssl) else { return nil }
        return NegotiatedTLS(
            version: version, cipher: String(cString: SSL_CIPHER_get_name(cipher)), group: groupName)
    }

    /// Client side: whether the server's signature proved its key, even if the handshake failed later.
    package var isServerKeyProved: Bool {
        var kind: CInt = 0
        return SSL_get_peer_signature_type_nid(ssl, &kind) == 1
    }

    /// The server's request for a client certificate; nil on the server's side.
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

    /// The server's certificates; nil for a resumed session, and on the server's side.
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
