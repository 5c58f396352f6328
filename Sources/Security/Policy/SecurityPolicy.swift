// Security: who an upstream must be, and who the proxy is to its clients. Decisions only: no sockets, no clock.

package import TLS

/// Decides whether a server is the one that was meant: AFNetworking's AFSecurityPolicy, with reasons.
///
/// **What it guards against.** Without pins, a certificate by any authority that the machine trusts
/// will do. With pins, only those that you named. The policy always answers with a ``Verdict``, which
/// says what was compared with what; a refusal's text ends in what to do about it.
///
/// ```swift
/// let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([try Pin(text: "sha256/…", for: .publicKey)]))
/// let verdict = policy.evaluate(presented, host: .dns("api.example.com"), anchors: anchors, at: now)
/// ```
///
/// **The rules**, one for each way the switches can stand ("valid" is
/// `TrustAnchors.verify` with the given clock; "name" is asked for where `validatesDomainName`):
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
/// peer proves in the handshake that it holds the leaf's key, and no other, so only that key counts.
///
/// `enforcement: report` softens a pin that doesn't match, and nothing else: what is not trusted
/// without the pins is refused. Where invalid certificates are allowed the pins are all that
/// authenticates the server, so there they are enforced regardless.
///
/// **Why pinning is dangerous** is told at ``Pin``.
public struct SecurityPolicy: Sendable {
    /// All that it says but the pins and what follows from them.
    package private(set) var terms: PolicyTerms
    /// Of which one must match.
    public private(set) var pins: PinSet
    /// Identifies policies that decide alike: with the anchors' digest, the key of upstream pools and session caches.
    package let digest: SHA256Digest
    /// The pinned certificates as anchors, built once; nil where they depend on what the peer shows.
    let pinnedAnchors: TrustAnchors?

    /// What is pinned, if anything.
    public var mode: PinningMode { terms.mode }
    /// Accept chains that the anchors don't vouch for. Loud: see ``unsafeSwitches``.
    public var allowsInvalidCertificates: Bool { terms.allowsInvalidCertificates }
    /// Ask for the host in the leaf's subjectAltName. False is loud.
    public var validatesDomainName: Bool { terms.validatesDomainName }
    /// Where in the chain a pin may match.
    public var position: PinPosition { terms.position }
    /// What a pin that doesn't match does.
    public var enforcement: Enforcement { terms.enforcement }
    package var requirements: TrustRequirements { terms.requirements }
    package var expiry: PinExpiry? { terms.expiry }

    package func replacing(_ requirements: TrustRequirements) -> SecurityPolicy {
        SecurityPolicy(
            mode: mode, pins: pins, allowsInvalidCertificates: allowsInvalidCertificates,
            validatesDomainName: validatesDomainName, position: position, enforcement: enforcement,
            requirements: requirements, expiry: expiry)
    }

    /// The same policy in memory that is allocated now.
    package func copied() -> SecurityPolicy {
        var policy = self
        policy.pins = pins.copied()
        return policy
    }

    /// The same policy, which has its terms in common with others that agree in them.
    package func sharing(_ known: inout SharedValues<PolicyTerms>) -> SecurityPolicy {
        var policy = self
        policy.terms = known.shared(terms)
        return policy
    }

    /// A policy with the usual requirements: TLS 1.2 or later, and a stapled OCSP response that revokes counts.
    /// - Parameters:
    ///   - mode: `none` leaves it to the trust anchors, and has no pins.
    ///   - allowsInvalidCertificates: leaves it to the pins alone. Only for servers without a certificate of an
    ///     authority.
    ///   - validatesDomainName: false accepts a certificate for any other host. Never without pins.
    ///   - position: where in the verified chain a pin may match.
    ///   - enforcement: `report` lets a connection through that no pin matches, and says so.
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
        requirements: TrustRequirements, expiry: PinExpiry? = nil
    ) {
        let terms = PolicyTerms(
            mode: mode, allowsInvalidCertificates: allowsInvalidCertificates, validatesDomainName: validatesDomainName,
            position: position, enforcement: enforcement, requirements: requirements, expiry: expiry)
        self.terms = terms
        self.pins = pins
        pinnedAnchors =
            mode == .certificate && pins.holdsAllAnchors
            ? TrustAnchors(pins.pins.compactMap(\.certificate)) : nil
        // Words end at a line break and each pin follows its length: no two policies share bytes.
        let switches = terms.words.joined(separator: "\n")
        let keys = pins.pins.map(\.key).sorted { $0.lexicographicallyPrecedes($1) }
        digest = SHA256Digest.of(Array(switches.utf8) + keys.flatMap { Array("\n\($0.count) ".utf8) + $0 })
    }

    /// What a pin that doesn't match does at an instant: the expiry may have softened it.
    package func enforcement(at time: UnixTime) -> Enforcement {
        guard let expiry, expiry.action == .report, expiry.hasPassed(at: time) else { return enforcement }
        return .report
    }
}

extension SecurityPolicy {
    /// A switch that takes protection away, to be named at start, by `lint` and on the status page.
    public enum UnsafeSwitch: Sendable, Hashable, CustomStringConvertible {
        /// `pinning: none`, invalid certificates allowed, no name check: anyone can be this host.
        case acceptsAnyone
        /// Invalid certificates allowed; the pins are all that authenticates the server.
        case allowsInvalidCertificates
        /// A valid certificate of any host will do.
        case ignoresName

        /// The switch by its name in the configuration, and what follows from it.
        public var description: String {
            switch self {
            case .acceptsAnyone:
                "accepts any certificate of anyone: allow_invalid_certificates is true, validates_domain_name "
                    + "is false and there is no pinning"
            case .allowsInvalidCertificates:
                "allow_invalid_certificates is true: the pins are all that tells this server from another"
            case .ignoresName: "validates_domain_name is false: a certificate for any other host will do"
            }
        }
    }

    /// The switches of this policy that take protection away; none by default.
    public var unsafeSwitches: [UnsafeSwitch] {
        if mode == .none, allowsInvalidCertificates, !validatesDomainName { return [.acceptsAnyone] }
        var switches: [UnsafeSwitch] = []
        if allowsInvalidCertificates { switches.append(.allowsInvalidCertificates) }
        if !validatesDomainName { switches.append(.ignoresName) }
        return switches
    }

    /// Settings that contradict each other: the configuration refuses them, and a policy refuses connections.
    public enum Contradiction: Sendable, Hashable, CustomStringConvertible {
        /// Pinning is asked for, and there is nothing to compare with.
        case noPins(PinningMode)
        /// Pins that `pinning: none` would leave unused.
        case unusedPins
        /// `allow_invalid_certificates` without pins, and yet a name to validate.
        case nothingToCheckTheNameBy
        /// With invalid certificates allowed only the leaf's key counts, and the position rules it out.
        case positionNeverMatches(PinPosition)
        /// With invalid certificates allowed a mismatch can't merely be reported.
        case reportWithoutTrust
        /// The same for pins that have expired.
        case reportOnExpiryWithoutTrust
        /// Where no chain is verified, what is asked of one (the keys) can't be looked at.
        case requirementsWithoutChain([String])

        /// What contradicts what, and what to write instead.
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
                "enforcement is report, but with allow_invalid_certificates the pins are all that authenticates "
                    + "the server, so they stay enforced; write enforcement: enforce"
            case .reportOnExpiryWithoutTrust:
                "on_expiry is report, but with allow_invalid_certificates the pins are all that authenticates "
                    + "the server; write on_expiry: enforce or deny"
            case .requirementsWithoutChain(let keys):
                "\(keys.joined(separator: ", ")) can't be looked at: with allow_invalid_certificates no chain is "
                    + "verified; write pinning: certificate, or take \(keys.count == 1 ? "it" : "them") back for this host"
            }
        }
    }

    /// What is wrong with the policy by itself; a session with such a policy isn't made.
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
