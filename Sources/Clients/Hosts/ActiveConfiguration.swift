package import Configuration
package import Logging
package import Security
package import Session
package import TLS

/// A snapshot together with what is made of it once for all workers.
package final class ActiveConfiguration: Sendable {
    package let snapshot: Snapshot
    /// The snapshot's, without the local authorities: an origin with such a certificate has got hold of the key.
    package let upstream: UpstreamSettings
    let terms: ExchangeTerms
    /// What clients inside CONNECT are shown, by the local authorities of its time.
    package let leaves: LeafCache
    /// TLS on the proxy's own port.
    package let frontTLS: TLSServerContext?
    /// Who may use the proxy; nil: everyone who can reach it.
    package let users: UserVerifier?

    package init(_ snapshot: Snapshot, leaves: LeafCache, logger: Logger) throws {
        self.snapshot = snapshot
        self.leaves = leaves
        terms = ExchangeTerms(timeouts: snapshot.timeouts, limits: snapshot.limits)
        var upstream = snapshot.upstream
        upstream.anchors = leaves.authorities.anchorsWithoutSelf(upstream.anchors)
        self.upstream = upstream
        frontTLS = try snapshot.proxy.tls.map { identity in
            var options = TLSServerContext.Options()
            options.identity = identity
            return try TLSServerContext(options: options)
        }
        users = try snapshot.proxy.users.map { try UserVerifier(file: $0, logger: logger) }
    }
}
