import COpenSSL
import CShims
import Glibc

/// One TLS connection over a connected, non-blocking socket. It doesn't own the descriptor, which must
/// stay open as long as this lives.
///
/// Not to be used from two threads at once. Nothing blocks: an operation that can't go on says which
/// readiness it waits for, and is then called again.
package struct TLSConnection: ~Copyable {
    private let state: ConnectionState
    // The state's own pointer, at hand without a load through the object.
    private let ssl: OpaquePointer
    private var isBroken = false

    /// A connection that we begin.
    ///
    /// - Parameters:
    ///   - serverName: sent as SNI if it is a DNS name (RFC 6066 has no SNI for addresses). Nothing is
    ///     checked against it here.
    ///   - session: to be resumed if the server still wants it.
    ///   - verify: called within `handshake()`, once, when the server's certificates have arrived, and
    ///     not at all if the session is resumed: it decides alone. It must not touch the connection.
    ///   - confirm: called within `handshake()`, once after each `verify` that accepted, with what the
    ///     context's options asked for and the server sent: before the handshake ends, and so before any
    ///     data of ours. Rejecting fails the handshake with the alert bad_certificate_status_response,
    ///     whatever the code. It must not touch the connection.
    ///   - onSession: called within `handshake()` or `read(into:)`, once for each session that can be
    ///     resumed later. It must not touch the connection.
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

    /// A connection that we accept.
    ///
    /// - Parameters:
    ///   - identity: shown to the client; nil: the context's own.
    ///   - ticketContext: up to 32 bytes that tickets are bound to. A ticket made under another context
    ///     is not resumed: a full handshake follows.
    ///   - alreadyReceived: what was read from the socket before anyone knew that TLS comes: the client
    ///     began its handshake without waiting for the answer to CONNECT.
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

    /// Goes on with the handshake until it is complete.
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

    /// Reads at most one record's worth of data; the count is more than 0 when complete. Call it again
    /// without waiting only while `hasPending` is true.
    package mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> TLSResult<Int> {
        OpenSSLErrorQueue.clear()
        let count = SSL_read(ssl, buffer.baseAddress, CInt(clamping: buffer.count))
        return count > 0 ? .complete(Int(count)) : failure(count)
    }

    /// Writes a part of the bytes, mostly one record, and tells how many were taken. An empty buffer is
    /// complete with 0. After `wantsWrite` the next write must begin with the same bytes.
    package mutating func write(_ bytes: UnsafeRawBufferPointer) -> TLSResult<Int> {
        guard bytes.count > 0 else { return .complete(0) }
        OpenSSLErrorQueue.clear()
        let count = SSL_write(ssl, bytes.baseAddress, CInt(clamping: bytes.count))
        return count > 0 ? .complete(Int(count)) : failure(count)
    }

    /// Sends close_notify: our data is whole. Reading may go on until the peer's. Nothing is sent, and
    /// that is complete, where TLS never came up or has failed.
    package mutating func shutdown() -> TLSResult<Void> {
        guard !isBroken, SSL_is_init_finished(ssl) == 1 else { return .complete(()) }
        OpenSSLErrorQueue.clear()
        let done = SSL_shutdown(ssl)
        return done >= 0 ? .complete(()) : failure(done)
    }

    /// Gives back the memory for records where nothing of one is in it. Reading a session ticket sets up the buffer for
    /// an answer that there is none to, and 16 KiB would stay until something is written.
    package mutating func releaseBuffers() { _ = SSL_free_buffers(ssl) }

    /// True if data has arrived that a read would find without a system call, or a part of a record.
    package var hasPending: Bool { SSL_has_pending(ssl) == 1 }

    /// The SNI of this connection's ClientHello as the client sent it; on the server's side, once the
    /// handshake has begun.
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

    /// On the client's side: true once the server has shown by a signature within this handshake that it
    /// holds its certificate's key, even where it ends the handshake later, for want of our certificate.
    package var isServerKeyProved: Bool {
        var kind: CInt = 0
        return SSL_get_peer_signature_type_nid(ssl, &kind) == 1
    }

    /// What the server asked for when it asked for a certificate of ours; nil if it didn't, and on the server's side.
    package var certificateRequest: ClientCertificateRequest? {
        state.isCertificateRequested ? ClientCertificateRequest(of: ssl) : nil
    }

    /// Why the server ended the connection, if that was over a certificate of ours that it asked for.
    /// - Parameter time: when it did; our certificate's dates are held against it.
    package func certificateRefusal(at time: UnixTime) -> ClientCertificateRefusal? {
        guard let alert = state.fatalAlert, let request = certificateRequest else { return nil }
        return ClientCertificateRefusal(alert: alert, to: request, at: time)
    }

    /// The application protocol agreed on by ALPN.
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
