package import EventLoop
package import TLS
package import Transport

/// What a worker makes upstream connections with.
package struct UpstreamConnector {
    let loop: EventLoop
    let resolver: Resolver
    let slabs: SlabPool
    let pool: UpstreamPool
    let sessions: UpstreamSessionCache
    let probes: ProbeCache
    let listeners: OwnListeners
    /// Its connections are not dialled; nil: there is none.
    let ownOrigin: (any OwnOrigin)?
    package let network: NetworkView
    let tls: TLSClientContext
    /// The wall clock, in Unix seconds; given, so that certificates can be judged at any time.
    let unixTime: @Sendable () -> Int64

    /// - Parameter listeners: where this process takes clients, and must not be one.
    package init(
        loop: EventLoop, resolver: Resolver, slabs: SlabPool, pool: UpstreamPool,
        sessions: UpstreamSessionCache, probes: ProbeCache = ProbeCache(),
        listeners: OwnListeners = OwnListeners(), network: NetworkView = NetworkView(), ownOrigin: (any OwnOrigin)? = nil,
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

    /// What the last probe for this tunnel was given beside the certificate `leaf`; nothing if there was none.
    package func evidence(about leaf: Certificate, for target: UpstreamTarget, at address: SocketAddress) -> PeerEvidence {
        target.probePlace(at: address).flatMap { probes.evidence(about: leaf, at: $0, at: unixTime()) } ?? PeerEvidence()
    }

    /// Ends what probes of this tunnel's origin have found, at whatever address: the origin was seen to show what the
    /// policy refuses.
    package func forgetProbes(of target: UpstreamTarget, at address: SocketAddress) {
        if let place = target.probePlace(at: address) { probes.forget(place.origin) }
    }
}
