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
    let tls: TLSClientContext
    /// The wall clock, in Unix seconds; given, so that certificates can be judged at any time.
    let unixTime: @Sendable () -> Int64

    /// - Parameter listeners: where this process takes clients, and must not be one.
    package init(
        loop: EventLoop, resolver: Resolver, slabs: SlabPool, pool: UpstreamPool,
        sessions: UpstreamSessionCache, probes: ProbeCache = ProbeCache(),
        listeners: OwnListeners = OwnListeners(), tls: TLSClientContext,
        unixTime: @escaping @Sendable () -> Int64
    ) {
        self.loop = loop
        self.resolver = resolver
        self.slabs = slabs
        self.pool = pool
        self.sessions = sessions
        self.probes = probes
        self.listeners = listeners
        self.tls = tls
        self.unixTime = unixTime
    }

    /// Begins to connect to `target`.
    /// - Parameters:
    ///   - address: the only one to be dialled; nil: those of the target's host, or of the parent proxy.
    ///   - completion: called once on the loop, never before this returns, and not after
    ///     ``UpstreamAttempt/cancel()``.
    package func connect(
        to target: UpstreamTarget, at address: SocketAddress? = nil, timeouts: Timeouts,
        completion: @escaping (Result<UpstreamConnection, UpstreamFailure>) -> Void
    ) -> UpstreamAttempt {
        let attempt = UpstreamAttempt(
            connector: self, target: target, address: address, timeouts: timeouts, completion: completion)
        loop.afterThisTurn { attempt.start() }
        return attempt
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

    /// Has the policy of a ``UpstreamTarget/Layer/verifiedTunnel(_:_:_:)`` judge the origin at `address`,
    /// or remembers what it said within the last minute.
    /// - Parameters:
    ///   - address: where the tunnel leads: the origin's, or the parent proxy's.
    ///   - connection: made for `target` at `address`, to be used up if the origin has to be asked, and left
    ///     alone if the verdict is remembered; nil: one is made.
    ///   - applicationProtocols: what the client offers; nil while it hasn't said.
    ///   - completion: called once on the loop, never before this returns, and not after
    ///     ``UpstreamProbe/cancel()``.
    package func probe(
        _ target: UpstreamTarget, at address: SocketAddress, over connection: UpstreamConnection? = nil,
        applicationProtocols: [String]?, timeouts: Timeouts, completion: @escaping (UpstreamProbe.Outcome) -> Void
    ) -> UpstreamProbe {
        let probe = UpstreamProbe(
            connector: self, target: target, address: address, over: connection,
            applicationProtocols: applicationProtocols, timeouts: timeouts, completion: completion)
        loop.afterThisTurn { probe.start() }
        return probe
    }
}
