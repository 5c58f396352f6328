package import TLS

/// Decides about leaves, with the authority's key, apart from the proxy (`authority.signer`): whatever has taken over
/// the proxy gets leaves only for hosts that the configuration intercepts, and not many.
package struct LeafSigner {
    private var authorities: AuthoritySet
    /// The signing one before the last reload: the proxy may not have followed yet.
    private var former: LocalAuthority?
    private var lifetime: Int64
    private var intercepts: (ServerName, _ port: UInt16) -> Bool
    private var allowance: LeafAllowance

    /// - Parameters:
    ///   - lifetime: seconds, `authority.leaf_lifetime`.
    ///   - intercepts: whether the configuration intercepts a host.
    package init(
        _ authorities: AuthoritySet, lifetime: Int64, allowance: LeafAllowance,
        intercepts: @escaping (ServerName, _ port: UInt16) -> Bool
    ) {
        (self.authorities, self.lifetime, self.allowance, self.intercepts) = (authorities, lifetime, allowance, intercepts)
    }

    /// Follows a reload. The allowance stays as it is.
    package mutating func replace(
        with authorities: AuthoritySet, lifetime: Int64, intercepts: @escaping (ServerName, _ port: UInt16) -> Bool
    ) {
        former = self.authorities.current.certificate == authorities.current.certificate ? nil : self.authorities.current
        (self.authorities, self.lifetime, self.intercepts) = (authorities, lifetime, intercepts)
    }

    /// Answers one packet, whoever sent it.
    package mutating func answer(_ packet: [UInt8], at unixTime: UnixTime, nanoseconds: UInt64) -> (answer: LeafAnswer, host: ServerName?) {
        guard let request = LeafRequest(packet) else { return (.refused("the request is malformed"), nil) }
        do throws(AuthorityError) {
            return (.leaf(try leaf(for: request, at: unixTime, nanoseconds: nanoseconds).der), request.host)
        } catch {
            return (.refused(error.description), request.host)
        }
    }

    private mutating func leaf(
        for request: LeafRequest, at unixTime: UnixTime, nanoseconds: UInt64
    ) throws(AuthorityError) -> Certificate {
        guard let authority = [authorities.current, authorities.next, former].compactMap(\.self).first(where: { $0.certificate.sha256 == request.authority })
        else { throw .otherAuthority }
        guard intercepts(request.host, request.port) else { throw .notIntercepted(request.host) }
        if let violation = authority.violation(by: request.host) { throw .constrained(violation) }
        let key: PublicKey
        do { key = try PublicKey(der: request.key) } catch { throw .signing(error) }
        guard allowance.take(at: nanoseconds) else { throw .exhausted }
        return try authority.leaf(for: request.host, key: key, at: unixTime, lifetime: lifetime)
    }
}
