package import Security
package import TLS

/// How TLS is spoken with one kind of origin: by its requirements, and with the certificate that it asks
/// its clients for. One for all hosts that agree in that, since a context is not small.
package final class ClientTLS: Sendable {
    package let context: TLSClientContext
    /// What we prove ourselves with, if we are asked.
    package let identity: Identity?
    /// Tells it from others: connections and sessions made with one are not used for another.
    package let digest: SHA256Digest

    package init(requirements: TrustRequirements, identity: Identity? = nil) throws(TLSError) {
        var options = TLSClientContext.Options()
        options.versions = requirements.minimumTLS...TLSVersion.tls13
        options.clientIdentity = identity
        context = try TLSClientContext(options: options)
        self.identity = identity
        digest = Self.digest(requirements: requirements, identity: identity)
    }

    /// The digest that an instance with these settings has.
    package static func digest(requirements: TrustRequirements, identity: Identity?) -> SHA256Digest {
        let chain = identity?.chain.flatMap { $0.sha256.bytes } ?? []
        return SHA256Digest.of([requirements.minimumTLS.rawValue] + chain)
    }
}
