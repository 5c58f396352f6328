import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Several paths from a leaf are judged separately: an invalid one doesn't affect the others.
@Suite struct PathTests {
    static let now = CertificateTemplate.now
    static let excluding = DERWriter.sequence(
        DERWriter.value(0xA1, DERWriter.sequence(DERWriter.value(0x82, Array("api.test".utf8)))))

    let root: HeldCertificate
    let other: HeldCertificate
    let issuer: HeldCertificate
    let leaf: HeldCertificate

    init() throws {
        root = try HeldCertificate.root("Root")
        other = try HeldCertificate.root("Other Root")
        issuer = try root.issue(.intermediate("Issuer", pathLength: nil))
        leaf = try issuer.issue(.leaf("api.test"))
    }

    /// The constraint is in the cross certificate, two steps above the leaf; the issuer is not at fault.
    @Test func anIssuerIsNotBlamedForAConstraintAboveIt() throws {
        let middle = try root.issue(.intermediate("Middle", pathLength: nil))
        let constrained = try root.issue(
            .intermediate("Middle", pathLength: nil).with {
                $0.keyPair = middle.key
                $0.extensions = [("2.5.29.30", true, Self.excluding)]
            })
        let near = try middle.issue(.intermediate("Near"))
        let leaf = try near.issue(.leaf("api.test"))
        for rest in Self.orders([near, constrained, middle]) {
            let chain = try verify(leaf, rest, [root]).get()
            #expect(try chain.certificates == certificates([leaf, near, middle, root]))
        }
        #expect(throws: VerificationFailure.self) { try verify(leaf, [near, constrained], [root]).get() }
    }

    /// Both roots are trusted; OpenSSL's first choice excludes the name.
    @Test func anAnchorThatExcludesTheNameIsNotTheOnlyOne() throws {
        for isFirst in [true, false] {
            let constrained = try HeldCertificate.selfSigned(
                .root("Root").with {
                    $0.keyPair = root.key
                    $0.extensions = [("2.5.29.30", true, Self.excluding)]
                })
            let anchors = isFirst ? [constrained, root] : [root, constrained]
            #expect(try verify(leaf, [issuer], anchors).get().certificates.last == Certificate(der: root.der))
        }
        // A constrained root that is trusted, and a cross certificate to one that isn't constrained.
        let constrained = try HeldCertificate.selfSigned(
            .root("Root").with {
                $0.keyPair = root.key
                $0.extensions = [("2.5.29.30", true, Self.excluding)]
            })
        let cross = try other.issue(.intermediate("Root", pathLength: nil).with { $0.keyPair = root.key })
        let chain = try verify(leaf, [issuer, cross], [constrained, other]).get()
        #expect(try chain.certificates == certificates([leaf, issuer, cross, other]))
    }

    /// An expired root that is still in the store, and a valid cross certificate for it.
    @Test func anExpiredAnchorSpoilsNoOtherWay() throws {
        let expired = try HeldCertificate.selfSigned(
            .root("Root").with {
                $0.keyPair = root.key
                $0.notAfter = Self.now - 1
            })
        let cross = try other.issue(.intermediate("Root", pathLength: nil).with { $0.keyPair = root.key })
        for rest in Self.orders([issuer, cross]) {
            let chain = try verify(leaf, rest, [expired, other]).get()
            #expect(try chain.certificates == certificates([leaf, issuer, cross, other]))
        }
        #expect(try failure(verify(leaf, [issuer], [expired, other]))?.reason == .expired)
    }

    /// A path length that one path satisfies and the other exceeds.
    @Test func aPathLengthIsOfOneWayOnly() throws {
        let short = try root.issue(.intermediate("Middle", pathLength: 0))
        let long = try other.issue(.intermediate("Middle", pathLength: nil).with { $0.keyPair = short.key })
        let near = try short.issue(.intermediate("Near"))
        let leaf = try near.issue(.leaf("api.test"))
        for rest in Self.orders([near, short, long]) {
            let chain = try verify(leaf, rest, [root, other]).get()
            #expect(try chain.certificates == certificates([leaf, near, long, other]))
        }
        #expect(try failure(verify(leaf, [near, short], [root, other]))?.reason == .pathTooLong)
    }

    // MARK: Bed

    func verify(
        _ leaf: HeldCertificate, _ rest: [HeldCertificate], _ anchors: [HeldCertificate]
    ) throws -> Result<VerifiedChain, VerificationFailure> {
        let presented = PresentedChain(leaf: try Certificate(der: leaf.der), rest: try certificates(rest))
        let options = VerificationOptions(name: .dns("api.test"), time: Self.now)
        return TrustAnchors(try certificates(anchors)).verify(presented, options: options)
    }

    func failure(_ result: Result<VerifiedChain, VerificationFailure>) -> VerificationFailure? {
        if case .failure(let failure) = result { failure } else { nil }
    }

    func certificates(_ held: [HeldCertificate]) throws -> [Certificate] {
        try held.map { try Certificate(der: $0.der) }
    }

    static func orders<Element>(_ elements: [Element]) -> [[Element]] {
        guard elements.count > 1 else { return [elements] }
        return elements.indices.flatMap { index in
            var rest = elements
            let first = rest.remove(at: index)
            return orders(rest).map { [first] + $0 }
        }
    }
}
