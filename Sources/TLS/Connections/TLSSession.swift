import COpenSSL

/// What a client keeps of a connection so that a later one to the same server can resume it.
///
/// It carries the verdict of the handshake that made it, and a resumed connection shows no
/// certificate: whoever keeps sessions must key them by everything that the verdict hung on.
package final class TLSSession: @unchecked Sendable {
    // An SSL_SESSION is counted with atomics, and is not changed once it has been handed out.
    let pointer: OpaquePointer

    /// Takes over one reference.
    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { SSL_SESSION_free(pointer) }

    /// True for TLS 1.3: to be used for one connection only, lest observers link the two (RFC 8446
    /// appendix C.4).
    package var isSingleUse: Bool { SSL_SESSION_get_protocol_version(pointer) == TLS1_3_VERSION }
}
