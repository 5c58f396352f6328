import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// A verified chain is reused only where everything that the verdict depends on is the same.
@Suite struct ProvenChainTests {
    static let now = CertificateTemplate.now
    static let day = CertificateTemplate.day

    let root: HeldCertificate
    let intermediate: HeldCertificate
    let leaf: HeldCertificate
    let anchors: TrustAnchors

    init() throws {
        root = try HeldCertificate.root()
        intermediate = try root.issue(.intermediate("Test Intermediate"))
        leaf = try intermediate.issue(.leaf("api.test").with { $0.serial = [0x0A, 0xBC] })
        anchors = TrustAnchors([try Certificate(der: root.der)])
        _ = try verify().get()
        #expect(anchors.proven.count == 1)
    }

    /// Verifies freshly parsed certificates, as from another connection.
    private func verify(
        _ leaf: [UInt8]? = nil, _ rest: [[UInt8]]? = nil, name: ServerName? = .dns("api.test"), time: UnixTime = now,
        lists: RevocationLists? = nil, lifetime: Int64? = nil,
        preferring isWanted: (VerifiedChain) -> Bool = { _ in true }
    ) throws -> Result<VerifiedChain, VerificationFailure> {
        let presented = PresentedChain(
            leaf: try Certificate(der: leaf ?? self.leaf.der),
            rest: try (rest ?? [intermediate.der]).map { try Certificate(der: $0) })
        let options = VerificationOptions(name: name, time: time, revocationLists: lists, maximumLeafLifetime: lifetime)
        return anchors.verify(presented, options: options, preferring: isWanted)
    }

    private func reason(_ result: Result<VerifiedChain, VerificationFailure>) -> VerificationFailure.Reason? {
        if case .failure(let failure) = result { failure.reason } else { nil }
    }

    @Test func theSameIsNotVerifiedAgain() throws {
        let (one, other) = (try verify().get(), try verify(time: Self.now + Self.day).get())
        // The certificates are the first connection's objects.
        #expect(one.leaf.pointer == other.leaf.pointer)
        #expect(anchors.proven.count == 1)
    }

    @Test func timeContinues() throws {
        #expect(reason(try verify(time: Self.now + 40 * Self.day)) == .expired)
        #expect(reason(try verify(time: Self.now - 40 * Self.day)) == .notYetValid)
        // It is valid again when the clock is right.
        #expect(throws: Never.self) { try verify().get() }
    }

    @Test func anotherNameIsAnotherQuestion() throws {
        #expect(reason(try verify(name: .dns("other.test"))) == .nameMismatch)
        #expect(reason(try verify(name: .ip("192.0.2.7"))) == .nameMismatch)
        #expect(throws: Never.self) { try verify(name: nil).get() }
        #expect(reason(try verify(name: .dns("other.test"))) == .nameMismatch)
    }

    @Test func everyByteCounts() throws {
        #expect(reason(try verify(nil, [])) == .unknownIssuer)
        // The signature is the last part of a certificate.
        var forged = leaf.der
        forged[forged.count - 1] ^= 1
        #expect(reason(try verify(forged)) == .badSignature)
        let stranger = try HeldCertificate.root().issue(.intermediate("Test Intermediate"))
        #expect(try reason(verify(stranger.issue(.leaf("api.test")).der, [stranger.der, intermediate.der])) != nil)
    }

    @Test func otherRulesAreAnotherQuestion() throws {
        #expect(reason(try verify(lifetime: 1)) == .lifetimeTooLong)
        let list = try RevocationList(
            der: intermediate.revocationList(
                RevocationListTemplate().with { $0.revoked = [([0x0A, 0xBC], Self.now, nil)] }))
        #expect(reason(try verify(lists: RevocationLists([list]))) == .revoked)
        #expect(throws: Never.self) { try verify().get() }
    }

    /// A chain that a pin doesn't match may have another path that it does.
    @Test func eachIsAskedWhetherItIsWanted() throws {
        var asked = 0
        _ = try verify { _ in
            asked += 1
            return false
        }.get()
        #expect(asked > 1)
    }

    @Test func othersAnchorsProveNothing() throws {
        let presented = PresentedChain(
            leaf: try Certificate(der: leaf.der), rest: [try Certificate(der: intermediate.der)])
        let other = TrustAnchors([try Certificate(der: HeldCertificate.root().der)])
        #expect(
            reason(other.verify(presented, options: VerificationOptions(name: .dns("api.test"), time: Self.now))) != nil
        )
    }

    @Test func onlySoManyAreKept() throws {
        for number in 0..<(ProvenChains.limit + 10) { _ = try verify(lifetime: 1_000 * Self.day + Int64(number)).get() }
        #expect(anchors.proven.count == ProvenChains.limit)
    }
}
