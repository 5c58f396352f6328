import CPinproxyOpenSSL

// One idea with both contexts: OpenSSL calls back by the context, and the connection's state answers.

/// The SSL object of one connection, and what its callbacks need. Belongs to one `TLSConnection`.
final class ConnectionState {
    let ssl: OpaquePointer
    private let descriptor: CInt
    private(set) var input: RecordInput?
    private let verifyPeer: ((PresentedChain) -> PeerVerdict)?
    private let confirmPeer: ((PeerEvidence) -> PeerVerdict)?
    private let asksForEvidence: Bool
    private let onSession: ((TLSSession) -> Void)?
    let server: TLSServerContext?
    private(set) var presented: PresentedChain?
    private(set) var rejected = false
    private(set) var clientServerName: String?
    private(set) var isCertificateRequested = false
    /// The client's ALPN offer, if nothing in it is supported.
    private(set) var refusedProtocols: [String] = []
    var fatalAlert: UInt8?
    private(set) var objection: String?
    private var firstAnswer = FirstAnswer.none
    private var readsFirst = false
    var budget: HandshakeBudget

    convenience init(
        client: TLSClientContext, descriptor: CInt, verify: @escaping (PresentedChain) -> PeerVerdict,
        confirm: ((PeerEvidence) -> PeerVerdict)?, onSession: ((TLSSession) -> Void)?
    ) throws(TLSError) {
        try self.init(
            client.handle, descriptor: descriptor, verify: verify, confirm: confirm,
            asksForEvidence: client.asksForEvidence, onSession: onSession, server: nil)
    }

    convenience init(server: TLSServerContext, descriptor: CInt) throws(TLSError) {
        try self.init(
            server.handle, descriptor: descriptor, verify: nil, confirm: nil, asksForEvidence: false, onSession: nil,
            server: server)
    }

    private init(
        _ context: ContextHandle, descriptor: CInt, verify: ((PresentedChain) -> PeerVerdict)?,
        confirm: ((PeerEvidence) -> PeerVerdict)?, asksForEvidence: Bool, onSession: ((TLSSession) -> Void)?,
        server: TLSServerContext?
    ) throws(TLSError) {
        OpenSSLErrorQueue.clear()
        guard let ssl = SSL_new(context.pointer) else { throw .setup("no TLS connection") }
        self.ssl = ssl
        self.descriptor = descriptor
        verifyPeer = verify
        confirmPeer = confirm
        self.asksForEvidence = asksForEvidence
        self.onSession = onSession
        self.server = server
        budget = HandshakeBudget(nanoseconds: context.handshakeNanoseconds)
        let state = Unmanaged.passUnretained(self).toOpaque()
        guard SSL_set_fd(ssl, descriptor) == 1, SSL_set_ex_data(ssl, 0, state) == 1 else {
            throw .setup("no TLS connection")
        }
        // The buffer of the data that comes after the handshake is made within it.
        if OpenSSLLibrary.readsAheadAfterHandshakes { SSL_set_default_read_buffer_len(ssl, ContextHandle.readAhead) }
    }

    deinit {
        // OpenSSL forbids sessions of connections freed without close_notify, as TLS 1.0 did; RFC 5246 section 7.2.1
        // doesn't. Those ended by a fatal alert stay forbidden.
        SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
        SSL_free(ssl)
    }

    /// Reads `bytes` before the socket.
    func readFirst(_ bytes: [UInt8]) throws(TLSError) {
        var bytes = bytes
        guard let socket = SSL_get_rbio(ssl), let buffer = BIO_new(BIO_f_buffer()) else {
            throw .setup("no TLS connection")
        }
        BIO_up_ref(socket)
        BIO_push(buffer, socket)
        SSL_set0_rbio(ssl, buffer)
        guard BIO_ctrl(buffer, BIO_C_SET_BUFF_READ_DATA, bytes.count, &bytes) == 1 else {
            throw .setup("no memory for what was received already")
        }
        readsFirst = true
    }

    /// Replaces OpenSSL's input by a ``RecordInput`` with the bytes already read.
    /// - Returns: nil: there is no memory for it, and nothing changes.
    func readAhead() -> RecordInput? {
        let input = RecordInput(descriptor)
        guard let before = SSL_get_rbio(ssl), let bio = input.makeBIO() else { return nil }
        var held = [UInt8](repeating: 0, count: BIO_ctrl_pending(before))
        let count = held.isEmpty ? 0 : BIO_read(before, &held, CInt(clamping: held.count))
        input.readFirst(held[..<max(0, Int(count))])
        // It outlives the SSL object, which deinit frees.
        self.input = input
        readsFirst = false
        SSL_set0_rbio(ssl, bio)
        SSL_set_read_ahead(ssl, 0)
        return input
    }

    /// Whether bytes wait that `readFirst` was given, or that the buffer has read behind them
    /// (``OpenSSLLibrary/readsAheadAfterHandshakes``).
    var holdsFirst: Bool { readsFirst && BIO_ctrl_pending(SSL_get_rbio(ssl)) > 0 }

    private static func of(_ connection: OpaquePointer?) -> ConnectionState? {
        guard let connection, let state = SSL_get_ex_data(connection, 0) else { return nil }
        return Unmanaged<ConnectionState>.fromOpaque(state).takeUnretainedValue()
    }

    // MARK: Client

    /// Called for each handshake message and record; for received ones before OpenSSL parses them.
    static func sawMessage(
        isSent: Bool, version: CInt, type: CInt, bytes: UnsafeRawBufferPointer, on connection: OpaquePointer?
    ) {
        guard !isSent, let state = of(connection) else { return }
        if state.firstAnswer == .none { state.firstAnswer = FirstAnswer(type: type, bytes) }
        guard type == SSL3_RT_HANDSHAKE, bytes.first == UInt8(SSL3_MT_CERTIFICATE) else { return }
        let message = CertificateMessage(bytes.bindMemory(to: UInt8.self).span, isTLS13: version >= TLS1_3_VERSION)
        guard let objection = message.objection else { return }
        state.objection = objection
        // The connection's own buffer, declared constant, which OpenSSL parses next.
        message.spoil(UnsafeMutableRawBufferPointer(mutating: bytes))
    }

    /// The server's first five bytes: a record, or something else.
    private enum FirstAnswer {
        case none, http, other

        init(type: CInt, _ bytes: UnsafeRawBufferPointer) {
            let isHTTP = bytes.starts(with: "HTTP/".utf8) || bytes.first == UInt8(ascii: "<")
            self = type == SSL3_RT_HEADER && isHTTP ? .http : .other
        }
    }

    /// Notes in the error that the server doesn't seem to speak TLS.
    func noting(_ error: TLSError) -> TLSError {
        var error = error
        error.mayBePlainHTTP =
            switch (firstAnswer, error.kind) {
            case (.http, .notTLS), (.none, .unexpectedEOF): true
            // A reset has many causes.
            default: false
            }
        return error
    }

    /// Called once a full handshake with the server's certificates, not for resumption. 1 accepts, 0 refuses.
    static func verify(_ store: OpaquePointer?) -> CInt {
        guard let store,
            let connection = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let state = of(OpaquePointer(connection))
        else { return 0 }
        return state.verify(store, on: OpaquePointer(connection))
    }

    private func verify(_ store: OpaquePointer, on connection: OpaquePointer) -> CInt {
        // Unreachable with an objection, since parsing failed; checked anyway.
        guard let leaf = X509_STORE_CTX_get0_cert(store), let verifyPeer, objection == nil, !budget.isSpent else {
            rejected = true
            X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
            return 0
        }
        // All that the peer sent, leaf first.
        let sent = CertificateStack.certificates(of: X509_STORE_CTX_get0_untrusted(store))
        let chain = PresentedChain(leaf: Certificate(sharing: leaf), rest: Array(sent.dropFirst()))
        presented = chain
        var verdict = verifyPeer(chain)
        switch verdict {
        case .accept where !asksForEvidence:
            // No evidence will follow.
            if let confirmPeer { verdict = confirmPeer(PeerEvidence()) }
        case .reject where asksForEvidence:
            // TLS 1.3 has it beside the certificates (RFC 8446 section 4.4.2.1). It changes nothing.
            _ = confirmPeer?(PeerEvidence(of: connection))
        case .accept, .reject: break
        }
        switch verdict {
        case .accept:
            X509_STORE_CTX_set_error(store, X509_V_OK)
            return 1
        case .reject(let code):
            rejected = true
            X509_STORE_CTX_set_error(store, code == X509_V_OK ? X509_V_ERR_APPLICATION_VERIFICATION : code)
            return 0
        }
    }

    /// Called once a handshake that asked for evidence, after `verify` and the server's first flight, with or without
    /// any; in TLS 1.3 for resumption too. 1 accepts, 0 ends the handshake.
    static func receivedEvidence(_ connection: OpaquePointer?) -> CInt {
        guard let connection, let state = of(connection) else { return 0 }
        guard SSL_session_reused(connection) == 0, let confirm = state.confirmPeer else { return 1 }
        if case .accept = confirm(PeerEvidence(of: connection)) { return 1 }
        state.rejected = true
        return 0
    }

    /// Called for each resumable session; in TLS 1.3 within a read, once a ticket. 1 keeps the reference.
    static func received(_ session: OpaquePointer?, on connection: OpaquePointer?) -> CInt {
        guard let session, let onSession = of(connection)?.onSession else { return 0 }
        onSession(TLSSession(owning: session))
        return 1
    }

    /// Called once a handshake if the server requests a certificate. 1: continue with what is configured.
    static func certificateRequested(_ connection: OpaquePointer?) -> CInt {
        of(connection)?.isCertificateRequested = true
        return 1
    }

    // MARK: Server

    /// Called first in a handshake: notes the ClientHello's SNI, since `SSL_get_servername` gives the original
    /// handshake's when TLS 1.2 resumes.
    static func receivedHello(_ connection: OpaquePointer?, alert: UnsafeMutablePointer<CInt>?) -> CInt {
        guard let connection, let state = of(connection) else { return SSL_CLIENT_HELLO_ERROR }
        var bytes: UnsafePointer<UInt8>?
        var count = 0
        guard SSL_client_hello_get0_ext(connection, UInt32(TLSEXT_TYPE_server_name), &bytes, &count) == 1,
            let bytes
        else { return SSL_CLIENT_HELLO_SUCCESS }
        guard let name = serverName(UnsafeBufferPointer(start: bytes, count: count)) else {
            alert?.pointee = SSL_AD_DECODE_ERROR
            return SSL_CLIENT_HELLO_ERROR
        }
        state.clientServerName = name
        return SSL_CLIENT_HELLO_SUCCESS
    }

    /// The host name of a server_name extension (RFC 6066 section 3): a list of one name of type 0.
    private static func serverName(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
        guard bytes.count > 5, bytes[2] == UInt8(TLSEXT_NAMETYPE_host_name) else { return nil }
        let listLength = Int(bytes[0]) << 8 | Int(bytes[1])
        let nameLength = Int(bytes[3]) << 8 | Int(bytes[4])
        let name = bytes[5...]
        guard listLength == bytes.count - 2, nameLength == name.count, !name.contains(0) else { return nil }
        return String(validating: name, as: UTF8.self)
    }

    static func selectProtocol(
        _ connection: OpaquePointer?, offered: UnsafePointer<UInt8>?, count: UInt32,
        output: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, outputLength: UnsafeMutablePointer<UInt8>?
    ) -> CInt {
        guard let protocols = of(connection)?.server?.applicationProtocols, let offered else {
            return SSL_TLSEXT_ERR_NOACK
        }
        guard !protocols.names.isEmpty else { return SSL_TLSEXT_ERR_NOACK }
        let names = UnsafeBufferPointer(start: offered, count: Int(count))
        guard let choice = protocols.select(from: names) else {
            of(connection)?.refusedProtocols = ApplicationProtocols.shown(names)
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
        output?.pointee = offered + choice.lowerBound
        outputLength?.pointee = UInt8(choice.count)
        return SSL_TLSEXT_ERR_OK
    }

    /// Called for each ticket sealed (`isNew`) or opened. 1: continue; 2: opened, replace it; 0: no key; -1: broken.
    static func ticketKey(
        _ connection: OpaquePointer?, name: UnsafeMutablePointer<UInt8>?, iv: UnsafeMutablePointer<UInt8>?,
        cipher: OpaquePointer?, mac: OpaquePointer?, isNew: CInt
    ) -> CInt {
        guard let tickets = of(connection)?.server?.tickets, let name, let iv else { return -1 }
        if isNew == 1 {
            guard let key = tickets.sealing() else { return 0 }
            guard RAND_bytes(iv, 16) == 1 else { return -1 }
            for (index, byte) in key.name.enumerated() { name[index] = byte }
            return key.prepare(cipher: cipher, iv: iv, mac: mac, seals: true) ? 1 : -1
        }
        guard let found = tickets.opening(UnsafeBufferPointer(start: name, count: 16)) else { return 0 }
        guard found.key.prepare(cipher: cipher, iv: iv, mac: mac, seals: false) else { return -1 }
        // TLS 1.3 tickets serve once, so the client gets another.
        return found.isOld || SSL_version(connection) == TLS1_3_VERSION ? 2 : 1
    }
}
