import EventLoop
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
        /// The same, once a probe of the same address has stood up to the policy.
        case verifiedTunnel(SecurityPolicy, TrustAnchors, ServerName)
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
            // Bytes that no one has looked at are worth nothing to another exchange.
            case .plain, .tunnel, .verifiedTunnel: nil
            case .tls(let policy, let anchors, _): Self.generation(of: policy, anchors, tls)
            }
        key = OriginKey(host: host, port: port, generation: generation, parent: upstream.parent)
    }

    private static func generation(
        of policy: SecurityPolicy, _ anchors: TrustAnchors, _ tls: ClientTLS?
    ) -> SHA256Digest {
        SHA256Digest.of(policy.digest.bytes + anchors.digest.bytes + (tls?.digest.bytes ?? []))
    }

    /// Where a probe for this tunnel goes, and under which policy; nil for anything else.
    func probePlace(at address: SocketAddress) -> ProbeCache.Place? {
        guard case .verifiedTunnel(let policy, let anchors, _) = layer else { return nil }
        return ProbeCache.Place(
            origin: OriginKey(
                host: host, port: port, generation: Self.generation(of: policy, anchors, nil), parent: key.parent),
            address: address)
    }

    package var host: String { key.host }
    package var port: UInt16 { key.port }
}
