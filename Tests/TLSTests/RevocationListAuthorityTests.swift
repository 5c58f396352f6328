import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// The name and signature of a revocation list decide its issuer, not authorityKeyIdentifier.
@Suite struct RevocationListAuthorityTests {
    static let now = CertificateTemplate.now
    static let day = CertificateTemplate.day

    let directory: TemporaryDirectory
    let root: HeldCertificate
    /// The issuer in the chain.
    let issuer: HeldCertificate
    /// The same key and name, in the certificate before the renewal.
    let renewed: HeldCertificate
    /// The same key and name, issued by another root.
    let crossSigned: HeldCertificate
    /// The same name with another key.
    let namesake: HeldCertificate
    let leaf: HeldCertificate

    init() throws {
        directory = try TemporaryDirectory()
        root = try HeldCertificate.root()
        let key = try TestKey()
        let template = CertificateTemplate.intermediate("Issuer").with { $0.keyPair = key }
        renewed = try root.issue(template)
        crossSigned = try HeldCertificate.root("Other Root").issue(template)
        issuer = try root.issue(template)
        namesake = try root.issue(.intermediate("Issuer"))
        leaf = try issuer.issue(.leaf("api.test").with { $0.serial = [0x0A, 0xBC] })
    }

    /// A form of authorityKeyIdentifier, and whether OpenSSL finds the list by it.
    enum Form: String, CaseIterable {
        case keyOnly, certificateOnly, both, none
        case renewedCertificate, crossSignedCertificate, keyAndRenewedCertificate, wrongKey

        var isFoundByOpenSSL: Bool {
            switch self {
            case .keyOnly, .certificateOnly, .both, .none: true
            case .renewedCertificate, .crossSignedCertificate, .keyAndRenewedCertificate, .wrongKey: false
            }
        }
    }

    private func template(_ form: Form, isRevoked: Bool) -> RevocationListTemplate {
        RevocationListTemplate().with {
            if isRevoked { $0.revoked = [([0x0A, 0xBC], Self.now - 10 * Self.day, nil)] }
            $0.keyIdentifier =
                switch form {
                case .keyOnly, .both, .keyAndRenewedCertificate: .right
                case .wrongKey: .wrong
                case .certificateOnly, .none, .renewedCertificate, .crossSignedCertificate: .none
                }
            $0.authority =
                switch form {
                case .certificateOnly, .both: issuer
                case .renewedCertificate, .keyAndRenewedCertificate: renewed
                case .crossSignedCertificate: crossSigned
                case .keyOnly, .none, .wrongKey: nil
                }
        }
    }

    /// OpenSSL refuses where it doesn't find the list, whatever that says. Here such a list counts, since the issuer's
    /// key has signed it.
    @Test(arguments: Form.allCases, [false, true])
    func formsOfAuthorityKeyIdentifier(_ form: Form, _ isRevoked: Bool) throws {
        let list = try issuer.revocationList(template(form, isRevoked: isRevoked))
        let verdict = try openSSL(list)
        #expect(verdict.isSuccess == (form.isFoundByOpenSSL && !isRevoked), "\(verdict.output)")
        if !form.isFoundByOpenSSL {
            #expect(verdict.output.contains("unable to get certificate CRL"), "\(verdict.output)")
        }
        switch (try verify(list), isRevoked) {
        case (.success(let chain), false): #expect(chain.unlisted == [1])
        case (.failure(let failure), true):
            #expect(failure.reason == .revoked)
            #expect(failure.depth == 0)
        case (let result, _): Issue.record("\(result)")
        }
    }

    /// A namesake's list names another key or certificate, and doesn't cover this issuer's certificates.
    @Test(arguments: [Form.keyOnly, .certificateOnly, .both])
    func aNamesakesList(_ form: Form) throws {
        let list = try namesake.revocationList(
            template(form, isRevoked: true).with { $0.authority = $0.authority.map { _ in namesake } })
        let chain = try verify(list).get()
        #expect(chain.unlisted == [0, 1])
        let lists = RevocationLists([try RevocationList(der: list, path: "namesake.crl")])
        #expect(lists.strangers(to: chain).map(\.path) == ["namesake.crl"])
        #expect(lists.terms(for: chain, at: Self.now).isEmpty)
        #expect(lists.end(for: chain, at: Self.now) == nil)
        // The issuer's own list counts beside it, in either order.
        let own = try issuer.revocationList(template(.renewedCertificate, isRevoked: true))
        for both in [[list, own], [own, list]] { #expect(try failure(both)?.reason == .revoked) }
    }

    /// A list without the issuer's signature can't be relied on, whether it names the issuer or none.
    @Test func aForgedList() throws {
        let nameless = try namesake.revocationList(template(.none, isRevoked: false))
        let naming = try namesake.revocationList(
            RevocationListTemplate().with {
                $0.keyIdentifier = .none
                $0.authority = issuer
            })
        let broken = try issuer.revocationList(template(.keyOnly, isRevoked: false).with { $0.breaksSignature = true })
        for list in [nameless, naming, broken] {
            let failure = try #require(try failure([list]))
            #expect(failure.reason == .revocationUnknown)
            #expect(
                failure.message.hasPrefix(
                    "the CRL of CN=Issuer can't be used: CRL signature failure, so it is unknown"), "\(failure)")
            // The issuer's own list overrides it.
            let own = try issuer.revocationList(template(.keyOnly, isRevoked: false))
            #expect(try self.failure([list, own]) == nil)
        }
    }

    /// After a change of keys the old key, which is further up in the chain, signs the list for both.
    @Test func anOlderKeyOfTheIssuer() throws {
        let old = try root.issue(.intermediate("Issuer", pathLength: nil))
        let new = try old.issue(.intermediate("Issuer"))
        let leaf = try new.issue(.leaf("api.test").with { $0.serial = [0x0A, 0xBC] })
        let list = try old.revocationList(template(.keyOnly, isRevoked: true))
        let options = VerificationOptions(
            name: .dns("api.test"), time: Self.now, revocationLists: RevocationLists([try RevocationList(der: list)]))
        let result = try TrustAnchors([Certificate(der: root.der)]).verify(
            PresentedChain(der: leaf.chainDER), options: options)
        guard case .failure(let failure) = result else {
            Issue.record("accepted")
            return
        }
        #expect(failure.reason == .revoked)
        #expect(failure.depth == 0)
    }

    // MARK: Scope

    private static func address(_ text: String) -> [UInt8] {
        DERWriter.value(0xA0, DERWriter.value(0x86, Array("http://\(text)".utf8)))
    }

    /// A list in parts: one for each distribution point.
    @Test(arguments: [("one.crl", true), ("two.crl", false)])
    func aListOfOneDistributionPoint(_ name: String, _ isAbout: Bool) throws {
        let points = DERWriter.sequence(DERWriter.sequence(DERWriter.value(0xA0, Self.address("crl.test/one.crl"))))
        let leaf = try issuer.issue(
            .leaf("api.test").with {
                $0.serial = [0x0A, 0xBC]
                $0.extensions = [(CostlyCertificates.distributionPoints, false, points)]
            })
        let scope = DERWriter.sequence(DERWriter.value(0xA0, Self.address("crl.test/\(name)")))
        let clean = RevocationListTemplate().with { $0.extensions = [("2.5.29.28", true, scope)] }
        #expect(try verify(issuer.revocationList(clean), leaf: leaf).get().unlisted == (isAbout ? [1] : [0, 1]))
        let stale = clean.with { $0.nextUpdate = Self.now - 1 }
        #expect(try failure([issuer.revocationList(stale)], leaf: leaf)?.reason == (isAbout ? .revocationUnknown : nil))
        let listed = clean.with { $0.revoked = [([0x0A, 0xBC], Self.now, nil)] }
        #expect(try failure([issuer.revocationList(listed)], leaf: leaf)?.reason == .revoked)
        // A certificate that names no distribution point is in none of the parts.
        #expect(try verify(issuer.revocationList(clean)).get().unlisted == [0, 1])
    }

    @Test(arguments: [
        (DERWriter.sequence(DERWriter.value(0x81, [0xFF]), DERWriter.value(0x82, [0xFF])), "a list of no certificates"),
        (
            DERWriter.sequence(
                DERWriter.value(
                    0xA0,
                    DERWriter.value(0xA1, DERWriter.sequence(DERWriter.identifier("2.5.4.3"), DERWriter.utf8("x"))))),
            "a list whose distribution point is relative"
        ),
    ])
    func scopesThatProtectNobody(_ scope: [UInt8], _ words: String) throws {
        let list = try issuer.revocationList(
            RevocationListTemplate().with { $0.extensions = [("2.5.29.28", true, scope)] })
        let fault = #expect(throws: RevocationListFault.self) { try RevocationList(der: list) }
        #expect(fault?.reason.hasPrefix(words) == true)
    }

    // MARK: What check and lint say

    @Test func defects() throws {
        let own = try RevocationLists([
            RevocationList(der: issuer.revocationList(template(.renewedCertificate, isRevoked: false)))
        ])
        let issuers = try [issuer, namesake, root].map { try Certificate(der: $0.der) }
        #expect(own.defects(among: issuers).isEmpty)
        #expect(own.defects(among: [issuers[1]]).map(\.kind) == [.anotherKey])
        // No issuer of that name is known.
        #expect(own.defects(among: [issuers[2]]).isEmpty)
        let mute = try root.issue(.intermediate("Mute").with { $0.keyUsage = [.keyCertSign] })
        let forbidden = try RevocationLists([RevocationList(der: mute.revocationList())])
        #expect(forbidden.defects(among: [try Certificate(der: mute.der)]).map(\.kind) == [.noRight])
    }

    // MARK: Bed

    private func verify(
        _ list: [UInt8], leaf: HeldCertificate? = nil
    ) throws -> Result<VerifiedChain, VerificationFailure> {
        try verify([list], leaf: leaf)
    }

    private func verify(
        _ lists: [[UInt8]], leaf: HeldCertificate? = nil
    ) throws -> Result<VerifiedChain, VerificationFailure> {
        let options = VerificationOptions(
            name: .dns("api.test"), time: Self.now,
            revocationLists: RevocationLists(try lists.map { try RevocationList(der: $0) }))
        return try TrustAnchors([Certificate(der: root.der)]).verify(
            PresentedChain(der: (leaf ?? self.leaf).chainDER), options: options)
    }

    private func failure(_ lists: [[UInt8]], leaf: HeldCertificate? = nil) throws -> VerificationFailure? {
        if case .failure(let failure) = try verify(lists, leaf: leaf) { failure } else { nil }
    }

    /// `openssl verify -crl_check` with the same chain, clock and list.
    private func openSSL(_ list: [UInt8]) throws -> (isSuccess: Bool, output: String) {
        let files = [
            try directory.file("root.pem", root.pem), try directory.file("issuer.pem", issuer.pem),
            try directory.file("list.pem", HeldCertificate.pem(list, label: "X509 CRL")),
        ]
        return try OpenSSLCommand.outcome([
            "verify", "-crl_check", "-attime", "\(Self.now)", "-CAfile", files[0], "-untrusted", files[1], "-CRLfile",
            files[2],
            try directory.file("leaf.pem", leaf.pem),
        ])
    }
}
