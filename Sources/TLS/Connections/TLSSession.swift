import COpenSSL

/// What a client keeps of a connection so that a later one to the same server can resume it.
///
/// It carries its handshake's verdict, since resuming presents no certificate: caches key it by all of its inputs.
package final class TLSSession: @unchecked Sendable {
    // An SSL_SESSION is counted with atomics, and is not changed once it has been handed out.
    let pointer: OpaquePointer

    /// Takes over one reference.
    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { SSL_SESSION_free(pointer) }

    /// True for TLS 1.3: used once, lest observers link two connections (RFC 8446 appendix C.4).
    package var isSingleUse: Bool { SSL_SESSION_get_protocol_version(pointer) == TLS1_3_VERSION }
}
