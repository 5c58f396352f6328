package import PinproxyTLS

/// Issues leaves with the authority's key, in a process apart from the proxy (`authority.signer`). An attacker who has
/// taken over the proxy gets leaves only for hosts that the configuration intercepts, and not many.
package struct LeafSigner {
    private var authorities: AuthoritySet
    /// The signing authority before the last reload: the proxy may not have followed yet.
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
        (self.authorities, self.lifetime, self.allowance, self.intercepts) = (
            authorities, lifetime, allowance, intercepts
        )
    }

    /// Follows a reload. The allowance doesn't change.
    package mutating func replace(
        with authorities: AuthoritySet, lifetime: Int64, intercepts: @escaping (ServerName, _ port: UInt16) -> Bool
    ) {
        former =
            self.authorities.current.certificate == authorities.current.certificate ? nil : self.authorities.current
        (self.authorities, self.lifetime, self.intercepts) = (authorities, lifetime, intercepts)
    }

    package struct Reply: Sendable {
        package let answer: LeafAnswer
        /// Nil: the request is malformed.
        package let host: ServerName?
        /// The proxy may have reread its files before this signer.
        package let isPerhapsOutdated: Bool
    }

    /// Answers one packet from any sender.
    package mutating func answer(_ packet: [UInt8], at unixTime: UnixTime, nanoseconds: UInt64) -> Reply {
        guard let request = LeafRequest(packet) else {
            return Reply(answer: .refused("the request is malformed"), host: nil, isPerhapsOutdated: false)
        }
        do throws(AuthorityError) {
            let leaf = try leaf(for: request, at: unixTime, nanoseconds: nanoseconds)
            return Reply(answer: .leaf(leaf.der), host: request.host, isPerhapsOutdated: false)
        } catch {
            let isPerhapsOutdated =
                switch error {
                case .otherAuthority, .notIntercepted: true
                default: false
                }
            return Reply(answer: .refused(error.description), host: request.host, isPerhapsOutdated: isPerhapsOutdated)
        }
    }

    private mutating func leaf(
        for request: LeafRequest, at unixTime: UnixTime, nanoseconds: UInt64
    ) throws(AuthorityError) -> Certificate {
        guard
            let authority = [authorities.current, authorities.next, former].compactMap(\.self).first(where: {
                $0.certificate.sha256 == request.authority
            })
        else { throw .otherAuthority }
        guard intercepts(request.host, request.port) else { throw .notIntercepted(request.host) }
        if let violation = authority.violation(by: request.host) { throw .constrained(violation) }
        let key: PublicKey
        do { key = try PublicKey(der: request.key) } catch { throw .signing(error) }
        guard allowance.take(at: nanoseconds) else { throw .exhausted }
        return try authority.leaf(for: request.host, key: key, at: unixTime, lifetime: lifetime)
    }
}
