import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// An anchor that isn't self-signed is trusted because it is an anchor.
@Suite struct PartialChainTests {
    static let now = CertificateTemplate.now

    let root: HeldCertificate
    let middle: HeldCertificate
    let issuer: HeldCertificate
    let leaf: HeldCertificate

    init() throws {
        root = try HeldCertificate.root()
        middle = try root.issue(.intermediate("Middle", pathLength: nil))
        issuer = try middle.issue(.intermediate("Issuer"))
        leaf = try issuer.issue(.leaf("api.test"))
    }

    @Test func anIntermediateEndsAChain() throws {
        #expect(try chain(leaf, [issuer, middle], to: [middle]) == [leaf, issuer, middle].map(\.der))
        #expect(try chain(leaf, [issuer, middle, root], to: [issuer]) == [leaf, issuer].map(\.der))
        #expect(try chain(leaf, [], to: [issuer]) == [leaf, issuer].map(\.der))
        // The machine's other roots change nothing.
        #expect(
            try chain(leaf, [issuer], to: [HeldCertificate.root("Other"), middle]) == [leaf, issuer, middle].map(\.der))
    }

    @Test func aLeafMayBeAnAnchor() throws {
        #expect(try chain(leaf, [issuer, middle], to: [leaf]) == [leaf].map(\.der))
        let other = try issuer.issue(.leaf("api.test"))
        #expect(try failure(other, [issuer, middle], to: [leaf])?.reason == .unknownIssuer)
        #expect(try failure(leaf, [], to: [leaf], name: "other.test")?.reason == .nameMismatch)
    }

    /// A pin of the root thus still matches where both are trusted.
    @Test func aSelfSignedAnchorIsPreferred() throws {
        #expect(
            try chain(leaf, [issuer, middle], to: [issuer, root, middle]) == [leaf, issuer, middle, root].map(\.der))
        #expect(try chain(leaf, [issuer, middle], to: [leaf, root]) == [leaf, issuer, middle, root].map(\.der))
    }

    /// Where such a chain isn't wanted, the shorter one may be.
    @Test func whatIsWantedDecides() throws {
        let other = try HeldCertificate.root("Other")
        let cross = try other.issue(.intermediate("Issuer").with { $0.keyPair = issuer.key })
        var asked: [Int] = []
        let result = try verify(leaf, [issuer, middle, cross], to: [root, cross]) { chain in
            asked.append(chain.certificates.count)
            return chain.certificates.count == 2
        }
        #expect(try result.get().certificates.map(\.der) == [leaf.der, cross.der])
        #expect(asked.contains(4))
    }

    @Test func itMustHoldByItself() throws {
        let expired = try root.issue(.intermediate("Expired").with { $0.notAfter = Self.now - 1 })
        #expect(try failure(expired.issue(.leaf("api.test")), [], to: [expired])?.reason == .expired)
        let weak = try root.issue(.intermediate("Weak").with { $0.key = .rsa(1024) })
        #expect(try failure(weak.issue(.leaf("api.test")), [], to: [weak])?.reason == .weakKey)
        let excluding = try root.issue(
            .intermediate("Excluding").with { $0.extensions = [("2.5.29.30", true, PathTests.excluding)] })
        #expect(try failure(excluding.issue(.leaf("api.test")), [], to: [excluding])?.reason == .nameConstraint)
        let bare = try root.issue(.intermediate("Bare").with { $0.basicConstraints = .none })
        #expect(try failure(bare.issue(.leaf("api.test")), [], to: [bare]) != nil)
        // The leaf is at fault, not the missing root.
        let old = try issuer.issue(.leaf("api.test").with { $0.notAfter = Self.now - 1 })
        #expect(try failure(old, [issuer], to: [middle])?.reason == .expired)
        #expect(try failure(leaf, [issuer], to: [middle], name: "other.test")?.reason == .nameMismatch)
    }

    /// A revocation by an authority above applies, since that is trusted too.
    @Test func refusalsFromAboveStand() throws {
        let excluding = try HeldCertificate.selfSigned(
            .root("Excluding").with { $0.extensions = [("2.5.29.30", true, PathTests.excluding)] })
        let below = try excluding.issue(.intermediate("Below"))
        #expect(
            try failure(below.issue(.leaf("api.test")), [below], to: [below, excluding])?.reason == .nameConstraint)

        let short = try root.issue(.intermediate("Short", pathLength: 0))
        let beyond = try short.issue(.intermediate("Beyond"))
        #expect(
            try failure(beyond.issue(.leaf("api.test")), [beyond], to: [beyond, short, root])?.reason == .pathTooLong)

        let revoked = try root.issue(.intermediate("Revoked").with { $0.serial = [0x22] })
        let list = try root.revocationList(RevocationListTemplate().with { $0.revoked = [([0x22], Self.now - 1, nil)] })
        let lists = RevocationLists([try RevocationList(der: list)])
        let leaf = try revoked.issue(.leaf("api.test"))
        #expect(try failure(leaf, [], to: [revoked, root], lists: lists)?.reason == .revoked)
        // Alone it is trusted by its owner's decision.
        #expect(try failure(leaf, [], to: [revoked], lists: lists) == nil)
    }

    /// The root has expired; the anchor below it hasn't.
    @Test func anExpiredRootAbove() throws {
        let expired = try HeldCertificate.selfSigned(.root("Expired").with { $0.notAfter = Self.now - 1 })
        let below = try expired.issue(.intermediate("Below"))
        let leaf = try below.issue(.leaf("api.test"))
        #expect(try failure(leaf, [below], to: [expired])?.reason == .expired)
        #expect(try chain(leaf, [below], to: [expired, below]) == [leaf, below].map(\.der))
    }

    @Test func itIsRemembered() throws {
        let anchors = try TrustAnchors([Certificate(der: middle.der)])
        let options = VerificationOptions(name: .dns("api.test"), time: Self.now)
        let presented = try PresentedChain(der: [leaf, issuer].map(\.der))
        for _ in 0..<2 { #expect(try anchors.verify(presented, options: options).get().certificates.count == 3) }
        #expect(anchors.proven.count == 1)
    }

    // MARK: Bed

    private func verify(
        _ leaf: HeldCertificate, _ rest: [HeldCertificate], to anchors: [HeldCertificate], name: String = "api.test",
        lists: RevocationLists? = nil, preferring isWanted: (VerifiedChain) -> Bool = { _ in true }
    ) throws -> Result<VerifiedChain, VerificationFailure> {
        try TrustAnchors(anchors.map { try Certificate(der: $0.der) }).verify(
            PresentedChain(der: ([leaf] + rest).map(\.der)),
            options: VerificationOptions(name: .dns(name), time: Self.now, revocationLists: lists), preferring: isWanted
        )
    }

    private func chain(
        _ leaf: HeldCertificate, _ rest: [HeldCertificate], to anchors: [HeldCertificate]
    ) throws -> [[UInt8]] {
        try verify(leaf, rest, to: anchors).get().certificates.map(\.der)
    }

    private func failure(
        _ leaf: HeldCertificate, _ rest: [HeldCertificate], to anchors: [HeldCertificate], name: String = "api.test",
        lists: RevocationLists? = nil
    ) throws -> VerificationFailure? {
        if case .failure(let failure) = try verify(leaf, rest, to: anchors, name: name, lists: lists) {
            failure
        } else {
            nil
        }
    }
}
