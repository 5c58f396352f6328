import PinproxyEventLoop
package import PinproxySecurity
package import PinproxyTLS

/// The destination of a request, and the requirements of its connection.
package struct UpstreamTarget: Sendable {
    package enum Layer: Sendable {
        case plain
        /// Opaque bytes.
        case tunnel
        /// A tunnel, after a probe of the same address has passed the policy.
        case verifiedTunnel(SecurityPolicy, TrustAnchors, ServerName)
        case tls(SecurityPolicy, TrustAnchors, ServerName)
    }

    /// Its permitted addresses, besides ``OriginKey/addresses``. Not part of the key: a connection made without this
    /// limit serves if its address is allowed (``Origin/lease(for:at:within:)``).
    package enum Reach: Sendable, Hashable {
        case anywhere
        /// No internal address, after a redirect from the internet. `orUnknown`: a parent proxy may look up the host.
        case outside(orUnknown: Bool)

        package func allows(_ scope: AddressScope?) -> Bool {
            switch (self, scope) {
            case (.anywhere, _), (.outside, .outside): true
            case (.outside, .inside): false
            case (.outside(let orUnknown), nil): orUnknown
            }
        }
    }

    package let key: OriginKey
    package let layer: Layer
    package private(set) var reach = Reach.anywhere
    /// The Via of a CONNECT to the parent proxy, if any.
    package let via: String?
    /// Settings that differ from the connector's.
    let tls: ClientTLS?
    /// The ALPN offer to the origin, best first.
    package private(set) var protocols: [HTTPProtocol]
    /// How often an HTTP/2 connection in use is probed; nil: never.
    let ping: Duration?

    /// - Parameter host: canonical: lower-case, no trailing dot, no brackets.
    package init(
        host: String, port: UInt16, layer: Layer, upstream: UpstreamSettings, client: ClientPlace = .thisMachine,
        via: String? = nil, tls: ClientTLS? = nil, protocols: [HTTPProtocol] = HTTPProtocol.usual,
        ping: Duration? = nil
    ) {
        self.ping = ping
        self.protocols = protocols
        self.layer = layer
        self.via = via
        self.tls = tls
        let keyLayer: OriginKey.Layer =
            switch layer {
            case .plain: .plain
            case .tunnel: .tunnel
            case .verifiedTunnel(let policy, let anchors, _):
                .verifiedTunnel(Self.generation(of: policy, anchors, nil, []))
            case .tls(let policy, let anchors, _): .tls(Self.generation(of: policy, anchors, tls, protocols))
            }
        // `localhost` is never resolved by another machine (RFC 6761 section 6.3).
        let parent = Resolver.isLocalhost(host) ? nil : upstream.parent
        key = OriginKey(
            host: host, port: port, layer: keyLayer, parent: parent,
            addresses: AddressGuard(upstream.addresses, client: client))
    }

    private static func generation(
        of policy: SecurityPolicy, _ anchors: TrustAnchors, _ tls: ClientTLS?, _ protocols: [HTTPProtocol]
    ) -> SHA256Digest {
        // Only an unusual list, as the other digests have a fixed length.
        let offer = protocols == HTTPProtocol.usual ? [] : protocols.flatMap { Array(",\($0.rawValue)".utf8) }
        return SHA256Digest.of(policy.digest.bytes + anchors.digest.bytes + (tls?.digest.bytes ?? []) + offer)
    }

    /// This target for a connection that carries one exchange at a time.
    func alone() -> UpstreamTarget {
        var target = self
        target.protocols = [.http1]
        return target
    }

    func limited(to reach: Reach) -> UpstreamTarget {
        var target = self
        target.reach = reach
        return target
    }

    /// Whether a client certificate may be presented there.
    package var hasIdentity: Bool { tls?.identity != nil }

    /// The key of this tunnel's probe in the cache; nil for other targets.
    func probePlace(at address: SocketAddress) -> ProbeCache.Place? {
        guard case .verifiedTunnel = key.layer else { return nil }
        return ProbeCache.Place(origin: key, address: address)
    }

    package var host: String { key.host }
    /// The host that is dialled: the parent proxy's, or the target's own.
    package var dialledHost: String { key.parent?.host ?? key.host }
    package var port: UInt16 { key.port }
}
