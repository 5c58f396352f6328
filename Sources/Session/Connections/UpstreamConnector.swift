package import PinproxyEventLoop
package import PinproxySecurity
package import PinproxyTLS
package import PinproxyTransport

package struct UpstreamConnector {
    let loop: EventLoop
    let resolver: Resolver
    let slabs: SlabPool
    let pool: UpstreamPool
    let sessions: UpstreamSessionCache
    let probes: ProbeCache
    let listeners: OwnListeners
    /// Handles its own hosts without dialling.
    let ownOrigin: (any OwnOrigin)?
    package let network: NetworkView
    let tls: TLSClientContext
    /// The wall clock in Unix seconds; injected for tests.
    let unixTime: @Sendable () -> Int64

    /// - Parameter listeners: this process's own, never to be dialled.
    package init(
        loop: EventLoop, resolver: Resolver, slabs: SlabPool, pool: UpstreamPool,
        sessions: UpstreamSessionCache, probes: ProbeCache = ProbeCache(),
        listeners: OwnListeners = OwnListeners(), network: NetworkView = NetworkView(),
        ownOrigin: (any OwnOrigin)? = nil,
        tls: TLSClientContext,
        unixTime: @escaping @Sendable () -> Int64
    ) {
        self.loop = loop
        self.resolver = resolver
        self.slabs = slabs
        self.pool = pool
        self.sessions = sessions
        self.probes = probes
        self.listeners = listeners
        self.network = network
        self.ownOrigin = ownOrigin
        self.tls = tls
        self.unixTime = unixTime
    }

    /// The evidence that the last probe for this tunnel received beside the certificate `leaf`.
    package func evidence(
        about leaf: Certificate, for target: UpstreamTarget, at address: SocketAddress
    ) -> PeerEvidence {
        target.probePlace(at: address).flatMap { probes.evidence(about: leaf, at: $0, at: unixTime()) }
            ?? PeerEvidence()
    }

    /// Forgets a tunnel's probes, at any address, after its origin was refused; after a revocation also the host's TLS
    /// sessions and probes under every policy, so that the next connection shows its certificate.
    package func forget(_ target: UpstreamTarget, after refusal: Refusal?) {
        guard refusal?.isRevocation == true else {
            if case .verifiedTunnel = target.key.layer { probes.forget { $0 == target.key } }
            return
        }
        let isOfHost = { (key: OriginKey) in key.host == target.host && key.port == target.port }
        sessions.retire(where: isOfHost)
        probes.forget(where: isOfHost)
    }
}
