import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// The verdict never depends on what a peer adds to its chain.
@Suite struct AppendedCertificateTests {
    static let now = CertificateTemplate.now

    let root: HeldCertificate
    let good: HeldCertificate
    let leaf: HeldCertificate

    init() throws {
        root = try HeldCertificate.root()
        good = try root.issue(.intermediate("Issuer"))
        leaf = try good.issue(.leaf("api.test"))
    }

    /// Certificates with the good intermediate's name and key that reach no anchor.
    private func spoilers() throws -> [(String, HeldCertificate)] {
        func twin(
            by issuer: HeldCertificate, _ change: (inout CertificateTemplate) -> Void = { _ in }
        ) throws
            -> HeldCertificate
        {
            try issuer.issue(
                .intermediate("Issuer").with {
                    $0.keyPair = good.key
                    change(&$0)
                })
        }
        let stranger = try HeldCertificate.root("Stranger")
        let excluding = DERWriter.sequence(
            DERWriter.value(0xA1, DERWriter.sequence(DERWriter.value(0x82, Array("api.test".utf8)))))
        return try [
            ("expired", twin(by: root) { $0.notAfter = Self.now - 1 }),
            ("of an unknown root", twin(by: stranger)),
            (
                "with an unknown critical extension",
                twin(by: root) { $0.extensions = [("1.2.3.4", true, DERWriter.null)] }
            ),
            ("for clients", twin(by: root) { $0.extendedKeyUsage = [CertificateTemplate.clientAuth] }),
            ("constrained to other names", twin(by: root) { $0.extensions = [("2.5.29.30", true, excluding)] }),
            ("with a broken signature", twin(by: root) { $0.breaksSignature = true }),
            ("signed with SHA-1", twin(by: root) { $0.digest = .sha1 }),
            ("with a serial number of zero", twin(by: root) { $0.serialContents = [0] }),
            ("with another key", impostor()),
        ]
    }

    /// A certificate with the same subject and key identifier, and another key.
    private func impostor() throws -> HeldCertificate {
        let identifier = try #require(try Certificate(der: good.der).subjectKeyIdentifier)
        return try root.issue(
            .intermediate("Issuer").with {
                $0.subjectKeyIdentifier = .none
                $0.extensions = [("2.5.29.14", false, DERWriter.octets(identifier))]
            })
    }

    @Test func besideEachSpoiler() throws {
        for (name, spoiler) in try spoilers() {
            // Alone it must fail, or the next lines would prove nothing.
            #expect(throws: VerificationFailure.self, "\(name)") { try verify([spoiler]).get() }
            for rest in [[spoiler, good], [good, spoiler], [spoiler, spoiler, good]] {
                let chain = try? verify(rest).get()
                #expect(try chain?.certificates == certificates([leaf, good, root]), "\(name)")
            }
        }
    }

    @Test func everyOrder() throws {
        let stranger = try HeldCertificate.root("Stranger")
        let expired = try root.issue(
            .intermediate("Issuer").with {
                $0.keyPair = good.key
                $0.notAfter = Self.now - 1
            })
        let astray = try stranger.issue(.intermediate("Issuer").with { $0.keyPair = good.key })
        let expected = try certificates([leaf, good, root])
        for rest in Self.orders([good, expired, astray, stranger, good]) {
            #expect(try verify(rest).get().certificates == expected)
        }
        // Without the good one, none of the orders is accepted.
        for rest in Self.orders([expired, astray, stranger, expired]) {
            #expect(throws: VerificationFailure.self) { try verify(rest).get() }
        }
    }

    @Test func allSpoilersAtOnce() throws {
        let all = try spoilers().map(\.1)
        // As many spoilers as are tried, and the good one at the end.
        let chain = try verify(Array(all.prefix(6)) + [good]).get()
        #expect(try chain.certificates == certificates([leaf, good, root]))
    }

    @Test func strangersCostNothing() throws {
        let strangers = try (0..<30).map { try HeldCertificate.root("Stranger \($0)") }
        for rest in [strangers + [good], [good] + strangers] {
            #expect(try verify(rest).get().certificates.count == 3)
        }
        let failure = #expect(throws: VerificationFailure.self) { try verify(strangers).get() }
        #expect(failure?.reason == .unknownIssuer)
    }

    @Test func tooManyNamesakes() throws {
        let twins = try (0..<21).map { number in
            try HeldCertificate.root("Stranger \(number)").issue(.intermediate("Issuer").with { $0.keyPair = good.key })
        }
        let failure = #expect(throws: VerificationFailure.self) { try verify(twins + [good]).get() }
        #expect(failure?.reason == .unknownIssuer)
        #expect(failure?.message.hasSuffix("; of what the server sent, only 20 certificates were checked") == true)
    }

    @Test func theFirstFailureIsTheAnswer() throws {
        let expired = try root.issue(
            .intermediate("Issuer").with {
                $0.keyPair = good.key
                $0.notAfter = Self.now - 1
            })
        let failure = #expect(throws: VerificationFailure.self) { try verify([expired]).get() }
        #expect(failure?.message == "issuing certificate expired 2029-12-31 (CN=Issuer)")
    }

    @Test func aPinnedCertificateOfSomebodyElse() throws {
        let pinned = try HeldCertificate.root("Pinned").issue(.leaf("api.test"))
        let chain = try verify([good, pinned, pinned.issuers[0]]).get()
        #expect(try chain.certificates == certificates([leaf, good, root]))
        // It vouches for no other certificate, even as an anchor.
        let anchors = TrustAnchors([try Certificate(der: pinned.der)])
        let options = VerificationOptions(name: .dns("api.test"), time: Self.now, allowsPartialChain: true)
        let presented = PresentedChain(leaf: try Certificate(der: leaf.der), rest: try certificates([good, pinned]))
        #expect(throws: VerificationFailure.self) { try anchors.verify(presented, options: options).get() }
    }

    @Test func aRevokedLeafStaysRevoked() throws {
        let revoked = try good.issue(.leaf("api.test").with { $0.serial = [9] })
        let cross = try root.issue(.intermediate("Issuer").with { $0.keyPair = good.key })
        let list = try RevocationList(
            der: good.revocationList(RevocationListTemplate().with { $0.revoked = [([9], 0, nil)] }))
        for rest in [[good, cross], [cross, good]] {
            let failure = #expect(throws: VerificationFailure.self) {
                try verify(rest, leaf: revoked, lists: RevocationLists([list])).get()
            }
            #expect(failure?.reason == .revoked)
        }
    }

    /// The list is the good issuer's, and its signature isn't by the impostor's key.
    @Test func anImpostorDoesNotSpoilARevocationList() throws {
        let lists = RevocationLists([try RevocationList(der: good.revocationList())])
        for rest in try [[impostor(), good], [good, impostor()]] {
            #expect(try verify(rest, lists: lists).get().certificates == certificates([leaf, good, root]))
        }
    }

    // MARK: Bed

    private func verify(
        _ rest: [HeldCertificate], leaf: HeldCertificate? = nil, lists: RevocationLists? = nil
    ) throws -> Result<VerifiedChain, VerificationFailure> {
        let presented = PresentedChain(
            leaf: try Certificate(der: (leaf ?? self.leaf).der), rest: try certificates(rest))
        let options = VerificationOptions(name: .dns("api.test"), time: Self.now, revocationLists: lists)
        return TrustAnchors(try certificates([root])).verify(presented, options: options)
    }

    private func certificates(_ held: [HeldCertificate]) throws -> [Certificate] {
        try held.map { try Certificate(der: $0.der) }
    }

    private static func orders<Element>(_ elements: [Element]) -> [[Element]] {
        guard elements.count > 1 else { return [elements] }
        return elements.indices.flatMap { index in
            var rest = elements
            let first = rest.remove(at: index)
            return orders(rest).map { [first] + $0 }
        }
    }
}
