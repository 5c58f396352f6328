import CPinproxyOpenSSL

/// A client's state to resume a session. It carries its handshake's verdict, since resuming presents no certificate:
/// caches key it by all of the verdict's inputs.
package final class TLSSession: @unchecked Sendable {
    // An SSL_SESSION is counted with atomics, and is not changed once it has been handed out.
    let pointer: OpaquePointer

    /// Takes over one reference.
    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { SSL_SESSION_free(pointer) }

    /// TLS 1.3 sessions are used once, so that observers can't link connections (RFC 8446 appendix C.4).
    package var isSingleUse: Bool { SSL_SESSION_get_protocol_version(pointer) == TLS1_3_VERSION }
}
