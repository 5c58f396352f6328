// Security: judges upstreams, and keeps the proxy's own authority. Decisions only: no sockets, no clock.

package import PinproxyTLS

/// Decides whether a server is the expected one: AFNetworking's AFSecurityPolicy, with reasons.
///
/// ```swift
/// let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([try Pin(text: "sha256/…", for: .publicKey)]))
/// let verdict = policy.evaluate(presented, host: .dns("api.example.com"), anchors: anchors, at: now)
/// ```
///
/// **The rules**, one for each way the switches can stand ("valid" is `TrustAnchors.verify` with the given clock;
/// "name" is asked for where `validatesDomainName`):
///
/// | mode        | allows invalid | accepted if                                                        |
/// |-------------|----------------|--------------------------------------------------------------------|
/// | none        | no             | valid to the anchors, name                                         |
/// | none        | yes            | without a name check: always; with one: never (nothing to check)   |
/// | certificate | no             | valid to the anchors, **and** to the pinned certificates alone, name |
/// | certificate | yes            | valid to the pinned certificates alone, dates included, name       |
/// | public key  | no             | valid to the anchors, name, **and** a key of the chain is pinned   |
/// | public key  | yes            | the **leaf's** key is pinned, name                                 |
///
/// A mode that pins and has no pins refuses. Pins are matched against the chain that verification
/// built, never against what the peer appended to it (CVE-2016-2402). The last row differs from
/// AFNetworking, which there accepts a pinned key anywhere in an unverified list, for any name: the
/// peer proves in the handshake that it holds the leaf's key only.
///
/// `enforcement: report` softens a pin mismatch, and nothing else: an untrusted chain is refused. Where invalid
/// certificates are allowed the pins alone authenticate the server, so they are always enforced.
public struct SecurityPolicy: Sendable {
    /// Everything but the pins and what follows from them.
    package private(set) var terms: PolicyTerms
    /// The pins; at least one must match.
    public private(set) var pins: PinSet
    /// Equal for policies that decide alike: with the anchors' digest, the key of upstream pools and session caches.
    package let digest: SHA256Digest
    /// The pinned certificates as anchors, built once; nil if they depend on the peer.
    let pinnedAnchors: TrustAnchors?

    /// The pinning mode.
    public var mode: PinningMode { terms.mode }
    /// Whether chains are accepted that the anchors don't verify: see ``unsafeSwitches``.
    public var allowsInvalidCertificates: Bool { terms.allowsInvalidCertificates }
    /// Whether the leaf's subjectAltName must contain the host: see ``unsafeSwitches``.
    public var validatesDomainName: Bool { terms.validatesDomainName }
    /// The positions in the chain at which a pin may match.
    public var position: PinPosition { terms.position }
    /// The effect of a pin mismatch, as it is written.
    public var enforcement: Enforcement { terms.enforcement }
    package var requirements: TrustRequirements { terms.requirements }
    package var expiry: PinExpiry? { terms.expiry }
    package var rollout: PinRollout? { terms.rollout }

    package func replacing(_ requirements: TrustRequirements) -> SecurityPolicy {
        SecurityPolicy(
            mode: mode, pins: pins, allowsInvalidCertificates: allowsInvalidCertificates,
            validatesDomainName: validatesDomainName, position: position, enforcement: enforcement,
            requirements: requirements, expiry: expiry, rollout: rollout)
    }

    /// This policy, enforced once its `enforce_after` has held; nil for any other.
    package func enforced(since time: UnixTime) -> SecurityPolicy? {
        guard let condition = rollout?.awaited else { return nil }
        return SecurityPolicy(
            mode: mode, pins: pins, allowsInvalidCertificates: allowsInvalidCertificates,
            validatesDomainName: validatesDomainName, position: position, enforcement: enforcement,
            requirements: requirements, expiry: expiry, rollout: .after(condition, enforcedSince: time))
    }

    /// A copy in newly allocated memory.
    package func copied() -> SecurityPolicy {
        var policy = self
        policy.pins = pins.copied()
        return policy
    }

    /// This policy, sharing equal terms.
    package func sharing(_ known: inout SharedValues<PolicyTerms>) -> SecurityPolicy {
        var policy = self
        policy.terms = known.shared(terms)
        return policy
    }

    /// A policy with the usual requirements: TLS 1.2 or later, and a stapled OCSP response that revokes counts.
    /// - Parameters:
    ///   - mode: `none` uses the trust anchors, and has no pins.
    ///   - pins: the keys or certificates that may match; one is enough.
    ///   - allowsInvalidCertificates: the pins alone decide; for servers without an authority's certificate.
    ///   - validatesDomainName: false accepts a certificate for any other host. Never without pins.
    ///   - position: where in the verified chain a pin may match.
    ///   - enforcement: `report` allows a connection that no pin matches, and reports it.
    public init(
        mode: PinningMode = .none, pins: PinSet = PinSet(), allowsInvalidCertificates: Bool = false,
        validatesDomainName: Bool = true, position: PinPosition = .any, enforcement: Enforcement = .enforce
    ) {
        self.init(
            mode: mode, pins: pins, allowsInvalidCertificates: allowsInvalidCertificates,
            validatesDomainName: validatesDomainName, position: position, enforcement: enforcement,
            requirements: TrustRequirements())
    }

    package init(
        mode: PinningMode = .none, pins: PinSet = PinSet(), allowsInvalidCertificates: Bool = false,
        validatesDomainName: Bool = true, position: PinPosition = .any, enforcement: Enforcement = .enforce,
        expiry: PinExpiry?
    ) {
        self.init(
            mode: mode, pins: pins, allowsInvalidCertificates: allowsInvalidCertificates,
            validatesDomainName: validatesDomainName, position: position, enforcement: enforcement,
            requirements: TrustRequirements(), expiry: expiry)
    }

    package init(
        mode: PinningMode = .none, pins: PinSet = PinSet(), allowsInvalidCertificates: Bool = false,
        validatesDomainName: Bool = true, position: PinPosition = .any, enforcement: Enforcement = .enforce,
        requirements: TrustRequirements, expiry: PinExpiry? = nil, rollout: PinRollout? = nil
    ) {
        let terms = PolicyTerms(
            mode: mode, allowsInvalidCertificates: allowsInvalidCertificates, validatesDomainName: validatesDomainName,
            position: position, enforcement: enforcement, requirements: requirements, expiry: expiry, rollout: rollout)
        self.terms = terms
        self.pins = pins
        pinnedAnchors =
            mode == .certificate && pins.holdsAllAnchors
            ? TrustAnchors(pins.pins.compactMap(\.certificate)) : nil
        // Words end at a line break and pins have a length prefix: no two policies share bytes.
        let switches = terms.words.joined(separator: "\n")
        let keys = pins.pins.map(\.key).sorted { $0.lexicographicallyPrecedes($1) }
        digest = SHA256Digest.of(Array(switches.utf8) + keys.flatMap { Array("\n\($0.count) ".utf8) + $0 })
    }

    /// The effect of a mismatch at an instant: the rollout may have hardened it, and the expiry softened.
    package func enforcement(at time: UnixTime) -> Enforcement {
        guard let expiry, expiry.action == .report, expiry.hasPassed(at: time) else {
            return enforcementBeforeExpiry(at: time)
        }
        return .report
    }

    /// The enforcement if pins didn't expire.
    package func enforcementBeforeExpiry(at time: UnixTime) -> Enforcement {
        rollout?.enforcement(at: time) ?? enforcement
    }

    /// A mismatch is only reported at that instant, since the entry says so: not because its pins have expired.
    package func onlyReports(at time: UnixTime) -> Bool {
        mode != .none && enforcementBeforeExpiry(at: time) == .report
    }
}

extension SecurityPolicy {
    /// A switch that removes protection, named at start, by `lint` and on the status page.
    public enum UnsafeSwitch: Sendable, Hashable, CustomStringConvertible {
        /// `pinning: none`, invalid certificates allowed, no name check: anyone can be this host.
        case acceptsAnyone
        /// Invalid certificates allowed: only the pins authenticate the server.
        case allowsInvalidCertificates
        /// A valid certificate of any host will do.
        case ignoresName

        /// The switch's name in the configuration, and its effect.
        public var description: String {
            switch self {
            case .acceptsAnyone:
                "accepts any certificate of anyone: allow_invalid_certificates is true, validates_domain_name "
                    + "is false and there is no pinning"
            case .allowsInvalidCertificates:
                "allow_invalid_certificates is true: only the pins authenticate the server"
            case .ignoresName: "validates_domain_name is false: a certificate for any other host will do"
            }
        }
    }

    /// The switches of this policy that remove protection; none by default.
    public var unsafeSwitches: [UnsafeSwitch] {
        if mode == .none, allowsInvalidCertificates, !validatesDomainName { return [.acceptsAnyone] }
        var switches: [UnsafeSwitch] = []
        if allowsInvalidCertificates { switches.append(.allowsInvalidCertificates) }
        if !validatesDomainName { switches.append(.ignoresName) }
        return switches
    }

    /// Contradictory settings: the configuration refuses them, and a policy refuses connections.
    public enum Contradiction: Sendable, Hashable, CustomStringConvertible {
        /// A pinning mode without pins.
        case noPins(PinningMode)
        /// Pins that `pinning: none` would leave unused.
        case unusedPins
        /// `allow_invalid_certificates` without pins, but with name validation.
        case nothingToCheckTheNameBy
        /// With invalid certificates allowed only the leaf's key counts, and the position rules it out.
        case positionNeverMatches(PinPosition)
        /// With invalid certificates allowed, a mismatch can't be reported only.
        case reportWithoutTrust
        /// With invalid certificates allowed, a mismatch of expired pins can't be reported only.
        case reportOnExpiryWithoutTrust
        /// Requirements, by their keys, of a chain that isn't verified.
        case requirementsWithoutChain([String])

        /// The contradiction, and what to write instead.
        public var description: String {
            switch self {
            case .noPins(let mode):
                "pinning is \(mode.rawValue) and there are no pins; add pins, or write pinning: none"
            case .unusedPins: "there are pins, but pinning is none; write pinning: public-key or certificate"
            case .nothingToCheckTheNameBy:
                "allow_invalid_certificates without pins leaves nothing that could prove the host's name; "
                    + "add pins, or set validates_domain_name to false as well and accept anyone"
            case .positionNeverMatches(let position):
                "position is \(position.rawValue), but with allow_invalid_certificates only the leaf's key can "
                    + "match; write position: leaf"
            case .reportWithoutTrust:
                "enforcement is report, but with allow_invalid_certificates the pins alone authenticate "
                    + "the server, so they stay enforced; write enforcement: enforce"
            case .reportOnExpiryWithoutTrust:
                "on_expiry is report, but with allow_invalid_certificates the pins alone authenticate "
                    + "the server; write on_expiry: enforce or deny"
            case .requirementsWithoutChain(let keys):
                "\(keys.joined(separator: ", ")) can't be checked: with allow_invalid_certificates no chain is "
                    + "verified; write pinning: certificate, or take \(keys.count == 1 ? "it" : "them") back for this "
                    + "host"
            }
        }
    }

    /// What is wrong with the policy; no session is made with such a policy.
    public var contradictions: [Contradiction] {
        var found: [Contradiction] = []
        if mode != .none, pins.isEmpty { found.append(.noPins(mode)) }
        if mode == .none, !pins.isEmpty { found.append(.unusedPins) }
        guard allowsInvalidCertificates else { return found }
        if mode == .none, validatesDomainName { found.append(.nothingToCheckTheNameBy) }
        if mode == .publicKey, position == .issuer || position == .root {
            found.append(.positionNeverMatches(position))
        }
        if mode != .none, enforcement == .report { found.append(.reportWithoutTrust) }
        if mode != .none, expiry?.action == .report { found.append(.reportOnExpiryWithoutTrust) }
        let keys = requirements.keysThatNeedAChain
        if mode != .certificate, !keys.isEmpty { found.append(.requirementsWithoutChain(keys)) }
        return found
    }
}
