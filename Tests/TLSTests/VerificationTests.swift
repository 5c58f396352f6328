import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Verification of real chains, at a time that the test sets.
@Suite struct VerificationTests {
    /// One good hierarchy, made once.
    struct Hierarchy: Sendable {
        let root: HeldCertificate
        let intermediate: HeldCertificate
        let leaf: HeldCertificate

        init() throws {
            root = try HeldCertificate.root()
            intermediate = try root.issue(.intermediate("Test Intermediate"))
            leaf = try intermediate.issue(.leaf("api.test"))
        }

        static let shared = Result { try Hierarchy() }
    }

    static let now = CertificateTemplate.now
    static let day = CertificateTemplate.day

    let good: Hierarchy

    init() throws { good = try Hierarchy.shared.get() }

    // MARK: Chains that hold

    @Test func goodChain() throws {
        let chain = try verify(good.leaf).get()
        #expect(try chain.certificates == certificates([good.leaf, good.intermediate, good.root]))
        #expect(try chain.leaf == Certificate(der: good.leaf.der))
        #expect(try chain.anchor == Certificate(der: good.root.der))
    }

    @Test func rootSentAlongIsNeededByNobody() throws {
        #expect(throws: Never.self) { try verify(good.leaf, sending: [good.intermediate, good.root]).get() }
        #expect(throws: Never.self) { try verify(good.leaf, sending: [good.intermediate]).get() }
        #expect(throws: Never.self) { try verify(good.leaf, sending: [good.root, good.intermediate]).get() }
    }

    @Test(arguments: [TestKey.Kind.p256, .p384, .rsa(2048), .ed25519])
    func keysOfAllKinds(_ kind: TestKey.Kind) throws {
        let root = try HeldCertificate.selfSigned(.root("Root").with { $0.key = kind })
        let leaf = try root.issue(.leaf("api.test").with { $0.key = kind })
        #expect(throws: Never.self) { try verify(leaf, anchors: [root]).get() }
    }

    @Test func appendedCertificateIsNotInTheVerifiedChain() throws {
        let foreign = try HeldCertificate.root("Foreign").issue(.leaf("pinned.test"))
        let chain = try verify(good.leaf, sending: [good.intermediate, foreign]).get()
        #expect(try !chain.certificates.contains(Certificate(der: foreign.der)))
        #expect(chain.certificates.count == 3)
    }

    @Test func everyAnchorCounts() throws {
        let other = try HeldCertificate.root("Other Root")
        #expect(throws: Never.self) { try verify(good.leaf, anchors: [other, good.root]).get() }
    }

    // MARK: Dates

    /// The leaf's first and last second, still valid (RFC 5280 section 4.1.2.5), and their neighbours.
    static let edges: [(Int64, VerificationFailure.Reason?)] = [
        (now - 30 * day - 1, .notYetValid), (now - 30 * day, nil), (now + 30 * day, nil),
        (now + 30 * day + 1, .expired),
    ]

    @Test(arguments: edges)
    func leafDates(_ time: Int64, _ reason: VerificationFailure.Reason?) throws {
        #expect(failure(verify(good.leaf, time: time))?.reason == reason)
    }

    /// The same for an issuer, an anchor, and a leaf that is its own anchor.
    @Test(arguments: [now - 1, now, now + 1])
    func lastSeconds(_ end: Int64) throws {
        let isOver = end < Self.now
        let issuer = try good.root.issue(.intermediate("Ending").with { $0.notAfter = end })
        #expect((failure(verify(try issuer.issue(.leaf("api.test")))) != nil) == isOver)
        let root = try HeldCertificate.selfSigned(.root("Ending Root").with { $0.notAfter = end })
        #expect((failure(verify(try root.issue(.leaf("api.test")), anchors: [root])) != nil) == isOver)
        let alone = try HeldCertificate.selfSigned(.leaf("api.test").with { $0.notAfter = end })
        #expect((failure(verify(alone, anchors: [alone], partial: true)) != nil) == isOver)
    }

    @Test func dateMessages() throws {
        let expired = try #require(failure(verify(good.leaf, time: Self.now + 40 * Self.day)))
        #expect(expired.message == "certificate expired 2030-01-31 (CN=api.test)")
        #expect(expired.depth == 0)
        #expect(try expired.certificate == Certificate(der: good.leaf.der))
        let early = try #require(failure(verify(good.leaf, time: Self.now - 40 * Self.day)))
        #expect(early.message == "certificate is not valid before 2029-12-02 (CN=api.test)")
    }

    @Test func expiredIntermediate() throws {
        let intermediate = try good.root.issue(.intermediate("Old").with { $0.notAfter = Self.now - 1 })
        let error = try #require(failure(verify(intermediate.issue(.leaf("api.test")))))
        #expect(error.reason == .expired)
        #expect(error.depth == 1)
        #expect(error.message == "issuing certificate expired 2029-12-31 (CN=Old)")
    }

    @Test func expiredRoot() throws {
        let root = try HeldCertificate.selfSigned(.root("Old Root").with { $0.notAfter = Self.now - 1 })
        #expect(failure(verify(try root.issue(.leaf("api.test")), anchors: [root]))?.reason == .expired)
    }

    // MARK: Anchors

    @Test func selfSigned() throws {
        let alone = try HeldCertificate.selfSigned(.leaf("api.test"))
        #expect(failure(verify(alone))?.reason == .selfSigned)
        #expect(failure(verify(alone, anchors: []))?.reason == .selfSigned)
    }

    @Test func unknownRoot() throws {
        let other = try HeldCertificate.root("Other Root")
        let sent = verify(good.leaf, sending: [good.intermediate, good.root], anchors: [other])
        #expect(failure(sent)?.reason == .untrustedRoot)
        let notSent = try #require(failure(verify(good.leaf, anchors: [other])))
        #expect(notSent.reason == .unknownIssuer)
        #expect(
            notSent.message
                == """
                issuer of CN=Test Intermediate is unknown: CN=Test Root is neither among the trust anchors nor sent by \
                the server
                """
        )
    }

    @Test func intermediateNotSent() throws {
        let error = failure(verify(good.leaf, sending: []))
        #expect(error?.reason == .unknownIssuer)
        #expect(error?.depth == 0)
    }

    @Test func rootOfTheSameNameWithAnotherKey() throws {
        let twin = try HeldCertificate.root()
        #expect(failure(verify(good.leaf, anchors: [twin])) != nil)
    }

    @Test func partialChains() throws {
        for anchor in [good.leaf, good.intermediate] {
            let chain = try verify(good.leaf, anchors: [anchor], partial: true).get()
            #expect(try chain.anchor == Certificate(der: anchor.der))
        }
        let late = verify(good.leaf, anchors: [good.leaf], time: Self.now + 40 * Self.day, partial: true)
        #expect(failure(late)?.reason == .expired)
        let renamed = verify(good.leaf, anchors: [good.leaf], name: .dns("other.test"), partial: true)
        #expect(failure(renamed)?.reason == .nameMismatch)
    }

    @Test func whatAPeerSendsWithAPinnedLeafCountsForNothing() throws {
        let expired = try good.root.issue(
            .intermediate("Test Intermediate").with {
                $0.keyPair = good.intermediate.key
                $0.notAfter = Self.now - 1
            })
        let chain = try verify(good.leaf, sending: [expired], anchors: [good.leaf], partial: true).get()
        #expect(try chain.certificates == certificates([good.leaf]))
    }

    @Test func excludingAnAuthority() throws {
        let own = try Certificate(der: good.root.der)
        let other = try HeldCertificate.root("Other Root")
        let all = TrustAnchors(try certificates([good.root, other]))
        let without = all.excluding(own)
        #expect(try without.certificates == certificates([other]))
        #expect(without.digest != all.digest)
        #expect(without.excluding(own).digest == without.digest)
        // A second certificate for the same key is the same authority.
        let renewed = try HeldCertificate.selfSigned(.root("Renewed").with { $0.keyPair = good.root.key })
        #expect(TrustAnchors(try certificates([renewed, other])).excluding(own).certificates.count == 1)
    }

    @Test func digestOfASetIgnoresOrderAndRepetition() throws {
        let some = try certificates([good.root, good.intermediate])
        #expect(TrustAnchors(some).digest == TrustAnchors(some.reversed() + some).digest)
        #expect(TrustAnchors(some).digest != TrustAnchors([some[0]]).digest)
    }

    // MARK: Signatures, strength, RFC 5280

    @Test func brokenSignature() throws {
        let leaf = try good.intermediate.issue(.leaf("api.test").with { $0.breaksSignature = true })
        #expect(failure(verify(leaf))?.reason == .badSignature)
    }

    @Test func weakKeys() throws {
        let weak = try good.intermediate.issue(.leaf("api.test").with { $0.key = .rsa(1024) })
        let error = try #require(failure(verify(weak)))
        #expect(error.reason == .weakKey)
        #expect(error.message == "certificate's key is too weak: RSA 1024 (CN=api.test)")
        let authority = try good.root.issue(.intermediate("Weak").with { $0.key = .rsa(1024) })
        #expect(failure(verify(try authority.issue(.leaf("api.test"))))?.reason == .weakKey)
        let root = try HeldCertificate.selfSigned(.root("Weak Root").with { $0.key = .rsa(1024) })
        #expect(failure(verify(try root.issue(.leaf("api.test")), anchors: [root]))?.reason == .weakKey)
    }

    @Test func sha1Signatures() throws {
        let leaf = try good.intermediate.issue(.leaf("api.test").with { $0.digest = .sha1 })
        #expect(failure(verify(leaf))?.reason == .weakSignature)
        let authority = try good.root.issue(.intermediate("Weak").with { $0.digest = .sha1 })
        #expect(failure(verify(try authority.issue(.leaf("api.test"))))?.reason == .weakSignature)
        // An anchor's own signature doesn't matter.
        let root = try HeldCertificate.selfSigned(.root("Old Root").with { $0.digest = .sha1 })
        #expect(throws: Never.self) { try verify(root.issue(.leaf("api.test")), anchors: [root]).get() }
    }

    @Test func purpose() throws {
        let client = try good.intermediate.issue(
            .leaf("api.test").with { $0.extendedKeyUsage = [CertificateTemplate.clientAuth] })
        #expect(failure(verify(client))?.reason == .wrongPurpose)
    }

    @Test func pathLength() throws {
        // The intermediate allows none below it.
        let deeper = try good.intermediate.issue(.intermediate("Too Deep"))
        #expect(failure(verify(try deeper.issue(.leaf("api.test"))))?.reason == .pathTooLong)
    }

    @Test func tooManyIssuers() throws {
        var authority = good.root
        for number in 0...TrustAnchors.maximumIntermediates {
            authority = try authority.issue(.intermediate("Level \(number)", pathLength: nil))
            let error = failure(verify(try authority.issue(.leaf("api.test"))))
            #expect((error == nil) == (number < TrustAnchors.maximumIntermediates))
        }
    }

    @Test func issuersThatMayNotIssue() throws {
        let bare = try good.root.issue(
            .intermediate("Bare").with {
                $0.basicConstraints = .none
                $0.keyUsage = nil
            })
        #expect(failure(verify(try bare.issue(.leaf("api.test"))))?.reason == .notAnAuthority)
        let leaf = try good.leaf.issue(.leaf("api.test"))
        #expect(failure(verify(leaf))?.reason == .notAnAuthority)
        let signs = try good.root.issue(.intermediate("No Signing").with { $0.keyUsage = [.cRLSign] })
        #expect(failure(verify(try signs.issue(.leaf("api.test")))) != nil)
    }

    @Test(arguments: [
        CertificateTemplate.intermediate("Strict").with { $0.basicConstraints = .uncriticalAuthority },
        .intermediate("Strict").with { $0.keyUsage = nil },
        .intermediate("Strict").with { $0.subjectKeyIdentifier = .none },
    ])
    func strictAuthorities(_ template: CertificateTemplate) throws {
        let leaf = try good.root.issue(template).issue(.leaf("api.test"))
        #expect(failure(verify(leaf))?.reason == .malformed)
    }

    @Test func strictLeaves() throws {
        let orphan = try good.intermediate.issue(.leaf("api.test").with { $0.authorityKeyIdentifier = .none })
        #expect(failure(verify(orphan))?.reason == .malformed)
        let misled = try good.intermediate.issue(.leaf("api.test").with { $0.authorityKeyIdentifier = .wrong })
        #expect(failure(verify(misled)) != nil)
        let unknown = try good.intermediate.issue(
            .leaf("api.test").with { $0.extensions = [("1.2.3.4", true, DERWriter.null)] })
        #expect(failure(verify(unknown))?.reason == .malformed)
    }

    @Test func nameConstraints() throws {
        // permittedSubtrees: DNS inside.test
        let permitted = DERWriter.value(0xA0, DERWriter.sequence(DERWriter.value(0x82, Array("inside.test".utf8))))
        let authority = try good.root.issue(
            .intermediate("Constrained").with {
                $0.extensions = [("2.5.29.30", true, DERWriter.sequence(permitted))]
            })
        let inside = try authority.issue(.leaf("a.inside.test"))
        #expect(throws: Never.self) { try verify(inside, name: .dns("a.inside.test")).get() }
        let outside = try authority.issue(.leaf("api.test"))
        #expect(failure(verify(outside))?.reason == .nameConstraint)
    }

    // MARK: Bed

    func verify(
        _ leaf: HeldCertificate, sending rest: [HeldCertificate]? = nil, anchors: [HeldCertificate]? = nil,
        name: ServerName? = .dns("api.test"), time: Int64 = now, partial: Bool = false
    ) -> Result<VerifiedChain, VerificationFailure> {
        do {
            let presented = PresentedChain(
                leaf: try Certificate(der: leaf.der), rest: try certificates(rest ?? Array(leaf.chain.dropFirst())))
            return TrustAnchors(try certificates(anchors ?? [good.root])).verify(
                presented, options: VerificationOptions(name: name, time: time, allowsPartialChain: partial))
        } catch {
            Issue.record(error)
            return .failure(.outOfMemory)
        }
    }

    func failure(_ result: Result<VerifiedChain, VerificationFailure>) -> VerificationFailure? {
        if case .failure(let failure) = result { failure } else { nil }
    }

    func certificates(_ held: [HeldCertificate]) throws -> [Certificate] {
        try held.map { try Certificate(der: $0.der) }
    }
}
