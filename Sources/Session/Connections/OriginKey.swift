package import PinproxyTLS

/// Everything that must be equal for a connection or TLS session to serve another exchange (architecture rule 2).
package struct OriginKey: Sendable, Hashable {
    package enum Layer: Sendable, Hashable {
        case plain
        /// Opaque bytes.
        case tunnel
        /// A tunnel after a probe, by the digest of the policy and the anchors.
        case verifiedTunnel(SHA256Digest)
        /// HTTP under TLS, by the digest of the policy, the anchors and the TLS settings.
        case tls(SHA256Digest)

        /// Whether a connection can serve another exchange; one that carried opaque bytes can't.
        package var isShared: Bool {
            switch self {
            case .plain, .tls: true
            case .tunnel, .verifiedTunnel: false
            }
        }
    }

    /// Canonical: lower-case, no trailing dot, no brackets.
    package let host: String
    package let port: UInt16
    package let layer: Layer
    package let parent: ParentProxy?
    package let addresses: AddressGuard
}
