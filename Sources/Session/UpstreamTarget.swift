package import Security
package import TLS

/// Where a request goes, and what the connection must stand up to.
package struct UpstreamTarget: Sendable {
    /// What runs over the connection.
    package enum Layer: Sendable {
        /// HTTP in the clear.
        case plain
        /// Whatever the client sends: not looked at.
        case tunnel
        /// HTTP under TLS, verified and pinned by the policy.
        case tls(SecurityPolicy, TrustAnchors, ServerName)
    }

    package let key: OriginKey
    package let layer: Layer
    package let blockedAddresses: Set<AddressClass>
    /// nil: the connector's own.
    let tls: ClientTLS?

    /// - Parameters:
    ///   - host: canonical: lower-case, no trailing dot, no brackets.
    ///   - tls: how TLS is spoken with it, where that isn't as with most.
    package init(host: String, port: UInt16, layer: Layer, upstream: UpstreamSettings, tls: ClientTLS? = nil) {
        self.layer = layer
        self.tls = tls
        blockedAddresses = upstream.blockedAddresses
        let generation: SHA256Digest? =
            switch layer {
            case .plain, .tunnel: nil
            case .tls(let policy, let anchors, _):
                SHA256Digest.of(policy.digest.bytes + anchors.digest.bytes + (tls?.digest.bytes ?? []))
            }
        key = OriginKey(host: host, port: port, generation: generation, parent: upstream.parent)
    }

    package var host: String { key.host }
    package var port: UInt16 { key.port }
}
