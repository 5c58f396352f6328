package import Logging
package import PinproxyConfiguration
package import PinproxySecurity
package import PinproxySession
package import PinproxyTLS

/// A snapshot, and what is made from it once for all workers.
package final class ActiveConfiguration: Sendable {
    package let snapshot: Snapshot
    /// Without the local authorities: an origin with such a certificate has stolen the key.
    package let upstream: UpstreamSettings
    let terms: ExchangeTerms
    /// Certificates for clients inside CONNECT.
    package let leaves: LeafCache
    /// TLS on the proxy's own port.
    package let frontTLS: TLSServerContext?
    /// The users who may use the proxy; nil: any client that can reach it.
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
            options.applicationProtocols = TLSServerContext.Options.names(of: snapshot.proxy.http)
            return try TLSServerContext(options: options)
        }
        users = try snapshot.proxy.users.map { try UserVerifier(file: $0, logger: logger) }
    }
}
