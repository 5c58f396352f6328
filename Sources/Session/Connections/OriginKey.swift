package import TLS

/// What must be equal for an upstream connection, or a TLS session, to serve another exchange: everything that makes
/// two connections different (architecture rule 2).
package struct OriginKey: Sendable, Hashable {
    package enum Layer: Sendable, Hashable {
        case plain
        /// Bytes that nobody has looked at.
        case tunnel
        /// The same, after a probe. The digest is that of the policy and the anchors.
        case verifiedTunnel(SHA256Digest)
        /// HTTP under TLS, by the digest of the policy, the anchors and the TLS settings.
        case tls(SHA256Digest)

        /// Whether a connection is as good as new after an exchange. One that bytes went through unread is not.
        package var isShared: Bool {
            switch self {
            case .plain, .tls: true
            case .tunnel, .verifiedTunnel: false
            }
        }
    }

    /// Canonical: lower-case, no trailing dot, no brackets; an address as it is dialled.
    package let host: String
    package let port: UInt16
    package let layer: Layer
    package let parent: ParentProxy?
    package let addresses: AddressGuard
}
