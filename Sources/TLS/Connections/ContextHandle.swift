import CPinproxyOpenSSL
import CPinproxyShims
import Glibc

/// An SSL_CTX with the settings of both sides.
final class ContextHandle: @unchecked Sendable {
    // An SSL_CTX guards itself; after the owning context's init nothing changes its settings.
    let pointer: OpaquePointer

    /// Forward secrecy and authenticated encryption only; AES-128-GCM first, the cheapest and browsers' choice.
    private static let suites12 =
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
        + "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:"
        + "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384"
    private static let suites13 = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
    /// X25519MLKEM768, post-quantum, came with OpenSSL 3.5, and the library may be older or newer than the build's. The
    /// first list with only known groups is used. A `*` sends a key share, so that neither kind of server has to ask
    /// again. The server's side prefers groups before a `/`, even if the client has to be asked again.
    private static let groups = ["*X25519MLKEM768/*X25519:P-256:P-384", "X25519:P-256:P-384"]
    private static let classicalSignatures =
        "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256:ECDSA+SHA384:RSA-PSS+SHA384:RSA+SHA384:"
        + "RSA-PSS+SHA512:RSA+SHA512:ECDSA+SHA512:ed25519"
    /// ML-DSA, post-quantum, came with OpenSSL 3.5, for TLS 1.3 alone. It is last: its certificates take 15 KB of a
    /// handshake, and servers with both kinds present the other one.
    private static let signatures = [classicalSignatures + ":mldsa44:mldsa65:mldsa87", classicalSignatures]

    /// Bytes per read after the handshake: four full records, for a quarter of the system calls. A handshake reads one
    /// record: its peer may stop at any byte. ``RecordInput`` reads differently.
    static let readAhead = 4 * (16 * 1024 + 256 + 5)

    /// Processor time that one handshake may take.
    let handshakeNanoseconds: UInt64

    init(
        _ method: OpaquePointer?, versions: ClosedRange<TLSVersion>,
        handshakeNanoseconds: UInt64 = HandshakeBudget.usual
    ) throws(TLSError) {
        OpenSSLErrorQueue.clear()
        BrokenPipes.ignore()
        let versions = versions.clamped(to: .tls12 ... .tls13)
        guard let pointer = SSL_CTX_new(method) else { throw .setup("no TLS context") }
        self.pointer = pointer
        self.handshakeNanoseconds = handshakeNanoseconds
        SSL_CTX_set_security_level(pointer, TrustAnchors.securityLevel)
        guard shim_SSL_CTX_set_min_proto_version(pointer, versions.lowerBound.wireValue) == 1,
            shim_SSL_CTX_set_max_proto_version(pointer, versions.upperBound.wireValue) == 1,
            SSL_CTX_set_cipher_list(pointer, Self.suites12) == 1,
            SSL_CTX_set_ciphersuites(pointer, Self.suites13) == 1,
            Self.groups.contains(where: { shim_SSL_CTX_set1_groups_list(pointer, $0) == 1 }),
            Self.signatures.contains(where: { shim_SSL_CTX_set1_sigalgs_list(pointer, $0) == 1 })
        else { throw .setup("TLS settings not accepted") }
        OpenSSLErrorQueue.clear()
        SSL_CTX_set_options(
            pointer,
            shim_SSL_OP_NO_RENEGOTIATION | shim_SSL_OP_NO_COMPRESSION | shim_SSL_OP_NO_CERTIFICATE_COMPRESSION)
        shim_SSL_CTX_set_mode(
            pointer,
            Int(SSL_MODE_RELEASE_BUFFERS) | Int(SSL_MODE_ENABLE_PARTIAL_WRITE)
                | Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
        shim_SSL_CTX_set_read_ahead(pointer, 1)
    }

    deinit { SSL_CTX_free(pointer) }

    /// Presents `identity` on connections without another.
    func use(_ identity: Identity) throws(TLSError) {
        let done = SSL_CTX_use_cert_and_key(
            pointer, identity.leaf.pointer, identity.key.pointer, identity.issuers.pointer, 1)
        guard done == 1 else { throw .setup("certificate of \(identity.leaf.subject) can't be used") }
    }
}

extension TLSVersion {
    fileprivate var wireValue: CInt {
        switch self {
        case .tls10: TLS1_VERSION
        case .tls11: TLS1_1_VERSION
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }
}

/// Blocks SIGPIPE, which OpenSSL's write(2) raises for a closed peer; the call's error says the same.
enum BrokenPipes {
    static func ignore() { _ = ignored }

    private static let ignored: Void = {
        var current = sigaction()
        sigaction(SIGPIPE, nil, &current)
        // Keeps a handler set elsewhere.
        if current.__sigaction_handler.sa_handler == nil { signal(SIGPIPE, SIG_IGN) }
    }()
}
