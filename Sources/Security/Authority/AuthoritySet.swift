package import PinproxyTLS

/// The signing authority, and those that clients should trust. There are several only during a rotation
/// (``AuthorityFiles/beginRotation(at:)``); the previous one stays trusted until its last leaves expire.
package struct AuthoritySet: Sendable {
    package let current: LocalAuthority
    package let next: LocalAuthority?
    package let previous: [Certificate]
    /// Why the files of a rotation can't be used; the proxy serves without them.
    package let problems: [AuthorityError]

    package init(
        _ current: LocalAuthority, next: LocalAuthority? = nil, previous: [Certificate] = [],
        problems: [AuthorityError] = []
    ) {
        self.current = current
        self.next = next
        self.previous = previous
        self.problems = problems
    }

    /// The authority that signs at `time`: the current one, or the next one if the current one has expired.
    package func signer(at time: UnixTime) -> LocalAuthority {
        guard time > current.end, let next, next.certificate.isValid(at: time) else { return current }
        return next
    }

    /// Trusted by clients, and never an anchor for upstreams.
    package var certificates: [Certificate] { [current.certificate] + (next.map { [$0.certificate] } ?? []) + previous }

    /// Upstream anchors without them: a proxy with this key would accept itself as any server.
    package func anchorsWithoutSelf(_ anchors: TrustAnchors) -> TrustAnchors {
        certificates.reduce(anchors) { $0.excluding($1) }
    }
}
