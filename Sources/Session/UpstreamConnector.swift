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
    let tls: TLSClientContext
    /// The wall clock, in Unix seconds; given, so that certificates can be judged at any time.
    let unixTime: @Sendable () -> Int64

    package init(
        loop: EventLoop, resolver: Resolver, slabs: SlabPool, pool: UpstreamPool,
        sessions: UpstreamSessionCache, tls: TLSClientContext, unixTime: @escaping @Sendable () -> Int64
    ) {
        self.loop = loop
        self.resolver = resolver
        self.slabs = slabs
        self.pool = pool
        self.sessions = sessions
        self.tls = tls
        self.unixTime = unixTime
    }

    /// Begins to connect to `target`.
    /// - Parameter completion: called once on the loop, never before this returns, and not after
    ///   ``UpstreamAttempt/cancel()``.
    package func connect(
        to target: UpstreamTarget, timeouts: Timeouts,
        completion: @escaping (Result<UpstreamConnection, UpstreamFailure>) -> Void
    ) -> UpstreamAttempt {
        let attempt = UpstreamAttempt(
            connector: self, target: target, timeouts: timeouts, completion: completion)
        loop.afterThisTurn { attempt.start() }
        return attempt
    }
}
