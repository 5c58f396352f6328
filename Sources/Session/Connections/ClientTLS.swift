package import PinproxySecurity
package import PinproxyTLS

/// The TLS requirements and client certificate for origins, shared by all hosts with equal ones.
package final class ClientTLS: Sendable {
    package let context: TLSClientContext
    package let identity: Identity?
    /// Keeps connections and sessions made with different settings apart.
    package let digest: SHA256Digest

    package init(requirements: TrustRequirements, identity: Identity? = nil) throws(TLSError) {
        var options = TLSClientContext.Options(for: requirements)
        options.clientIdentity = identity
        context = try TLSClientContext(options: options)
        self.identity = identity
        digest = Self.digest(requirements: requirements, identity: identity)
    }

    package static func digest(requirements: TrustRequirements, identity: Identity?) -> SHA256Digest {
        let chain = identity?.chain.flatMap { $0.sha256.bytes } ?? []
        let options = TLSClientContext.Options(for: requirements)
        let switches: [UInt8] = [
            requirements.minimumTLS.rawValue, options.requestsStatus ? 1 : 0, options.requestsTimestamps ? 1 : 0,
        ]
        return SHA256Digest.of(switches + chain)
    }
}

extension TLSClientContext.Options {
    /// The handshake asks for all that judging the requirements needs.
    package init(for requirements: TrustRequirements) {
        self.init()
        versions = requirements.minimumTLS...TLSVersion.tls13
        applicationProtocols = HTTPProtocol.usual.map(\.rawValue)
        requestsStatus = requirements.stapling != .ignore
        requestsTimestamps = requirements.transparencyLogs != nil
    }
}
