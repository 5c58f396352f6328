import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Revocation lists from files, and their effect on a verdict.
@Suite struct RevocationTests {
    static let now = CertificateTemplate.now
    static let day = CertificateTemplate.day

    let directory: TemporaryDirectory
    let root: HeldCertificate
    let intermediate: HeldCertificate
    let leaf: HeldCertificate

    init() throws {
        directory = try TemporaryDirectory()
        root = try HeldCertificate.root()
        intermediate = try root.issue(.intermediate("Intermediate").with { $0.serial = [0x22] })
        leaf = try intermediate.issue(.leaf("api.test").with { $0.serial = [0x0A, 0xBC] })
    }

    private let revoked: (serial: [UInt8], date: Int64, reason: UInt8?) = ([0x0A, 0xBC], now - 10 * day, 1)

    // MARK: Verdicts

    @Test func aCleanListLetsPass() throws {
        let lists = try lists(intermediate.revocationList(), root.revocationList())
        #expect(failure(lists) == nil)
        let other = RevocationListTemplate().with { $0.revoked = [([0x01], Self.now - Self.day, nil)] }
        #expect(failure(try self.lists(intermediate.revocationList(other))) == nil)
    }

    @Test func anIssuerWithoutAListIsNotAsked() throws {
        let stranger = try HeldCertificate.root("Stranger")
        let template = RevocationListTemplate().with { $0.revoked = [revoked] }
        #expect(failure(try lists(stranger.revocationList(template))) == nil)
        #expect(failure(try lists()) == nil)
        // The same name with another key is another issuer.
        let twin = try HeldCertificate.selfSigned(.root("Intermediate"))
        #expect(failure(try lists(twin.revocationList(template))) == nil)
    }

    @Test func aRevokedLeaf() throws {
        let template = RevocationListTemplate().with { $0.revoked = [([1], 0, nil), revoked] }
        let failure = try #require(failure(try lists(intermediate.revocationList(template))))
        #expect(failure.reason == .revoked)
        #expect(failure.depth == 0)
        #expect(failure.message == "certificate was revoked on 2029-12-22 (key compromise) (CN=api.test, serial 0abc)")
    }

    @Test func aRevokedIntermediate() throws {
        let template = RevocationListTemplate().with { $0.revoked = [([0x22], Self.now - Self.day, nil)] }
        let failure = try #require(failure(try lists(root.revocationList(template))))
        #expect(failure.reason == .revoked)
        #expect(failure.depth == 1)
        #expect(failure.message == "issuing certificate was revoked on 2029-12-31 (CN=Intermediate, serial 22)")
    }

    @Test func theAnchorIsItsOwnersDecision() throws {
        let template = RevocationListTemplate().with { $0.revoked = [([0x22], Self.now - Self.day, nil)] }
        let lists = try lists(root.revocationList(template))
        #expect(failure(lists, anchor: intermediate, partial: true) == nil)
    }

    @Test(arguments: [
        (RevocationListTemplate().with { $0.nextUpdate = now - 1 }, "expired 2029-12-31"),
        (RevocationListTemplate().with { $0.thisUpdate = now + 1 }, "can't be used: CRL is not yet valid"),
        (RevocationListTemplate().with { $0.breaksSignature = true }, "can't be used: CRL signature failure"),
        (
            RevocationListTemplate().with { $0.extensions = [("1.2.3.4", true, DERWriter.null)] },
            "can't be used: unhandled critical CRL extension"
        ),
    ])
    func listsThatCantBeReliedOn(_ template: RevocationListTemplate, _ words: String) throws {
        for (issuer, depth, role) in [(intermediate, 0, "certificate"), (root, 1, "issuing certificate")] {
            let failure = try #require(failure(try lists(issuer.revocationList(template))))
            #expect(failure.reason == .revocationUnknown)
            #expect(failure.depth == depth)
            #expect(
                failure.message.hasPrefix(
                    """
                    the CRL of CN=\(depth == 0 ? "Intermediate" : "Test Root") \(words), so it is unknown whether \
                    the \(role) was revoked (CN=
                    """
                ), "\(failure.message)")
        }
    }

    /// A list is out of date only after its nextUpdate (RFC 5280 section 6.3.3).
    @Test func itsFirstAndItsLastSecondCount() throws {
        let brief = RevocationListTemplate().with {
            $0.thisUpdate = Self.now
            $0.nextUpdate = Self.now
        }
        #expect(failure(try lists(intermediate.revocationList(brief), root.revocationList(brief))) == nil)
        // It is checked in that second.
        let listed = brief.with { $0.revoked = [revoked] }
        #expect(failure(try lists(intermediate.revocationList(listed)))?.reason == .revoked)
    }

    @Test func anIssuerThatMayNotSignLists() throws {
        let issuer = try root.issue(.intermediate("Issuer").with { $0.keyUsage = [.keyCertSign] })
        let leaf = try issuer.issue(.leaf("api.test"))
        #expect(failure(try lists(issuer.revocationList()), leaf: leaf)?.reason == .revocationUnknown)
    }

    @Test func ofTwoListsTheCurrentOneCounts() throws {
        let stale = try intermediate.revocationList(
            RevocationListTemplate().with {
                $0.revoked = [revoked]
                $0.nextUpdate = Self.now - 1
            })
        for lists in try [lists(stale, intermediate.revocationList()), lists(intermediate.revocationList(), stale)] {
            #expect(failure(lists) == nil)
        }
    }

    @Test func aListOfAnotherScopeLetsPassWhatItDoesntHave() throws {
        let onlyAuthorities = RevocationListTemplate().with {
            $0.extensions = [("2.5.29.28", true, DERWriter.sequence(DERWriter.value(0x82, [0xFF])))]
        }
        #expect(failure(try lists(intermediate.revocationList(onlyAuthorities))) == nil)
        let withLeaf = onlyAuthorities.with { $0.revoked = [revoked] }
        #expect(failure(try lists(intermediate.revocationList(withLeaf)))?.reason == .revoked)
    }

    // MARK: Files

    @Test func filesOfBothForms() throws {
        let (one, other) = (try root.revocationList(), try intermediate.revocationList())
        let der = try directory.file("one.crl", one)
        let pem = try directory.file("two.pem", "comment\n" + Self.pem(one) + root.pem + Self.pem(other))
        let alone = try RevocationLists.load([der])
        let both = try RevocationLists.load([pem])
        #expect(!alone.isEmpty)
        #expect(alone.digest != both.digest)
        #expect(try RevocationLists.load([der, pem]).digest == both.digest)
        #expect(try RevocationLists.load([]).isEmpty)
    }

    @Test func filesThatCantBeUsed() throws {
        func message(_ bytes: [UInt8]) throws -> String? {
            let path = try directory.file("bad.crl", bytes)
            return #expect(throws: RevocationListError.self) { try RevocationLists.load([path]) }
                .map { $0.description.replacing(path, with: "FILE") }
        }
        let good = try root.revocationList()
        #expect(try message(Array(root.pem.utf8)) == "FILE: it contains no revocation list")
        #expect(try message([])?.hasPrefix("FILE: not a PEM or DER CRL (") == true)
        #expect(try message(root.der)?.hasPrefix("FILE: not a PEM or DER CRL (") == true)
        #expect(try message(good + [0]) == "FILE: there are bytes after the revocation list")
        let second = Array((Self.pem(good) + Self.pem(Array(good.dropLast()))).utf8)
        let line = Self.pem(good).split(separator: "\n").count + 1
        #expect(try message(second)?.hasPrefix("FILE: line \(line): list 2 in it: not a PEM or DER CRL (") == true)
        let missing = "\(directory.path)/missing"
        #expect(throws: RevocationListError.unreadable(path: missing, .system(2))) {
            try RevocationLists.load([missing])
        }
    }

    @Test func aListThatIsTooLong() throws {
        let path = try directory.file("long.crl", [UInt8](repeating: 0x30, count: RevocationLists.sizeLimit + 1))
        #expect(throws: RevocationListError.tooLong(path: path)) { try RevocationLists.load([path]) }
        #expect(
            RevocationListError.tooLong(path: "x.crl").description.hasPrefix(
                "x.crl: the lists are longer than 16 MiB together"))
    }

    /// A chain that fails for another reason doesn't need the list to be hashed.
    @Test func theListIsAskedLast() throws {
        let stale = try lists(
            intermediate.revocationList(RevocationListTemplate().with { $0.nextUpdate = Self.now - 1 }))
        let expired = try intermediate.issue(.leaf("api.test").with { $0.notAfter = Self.now - 1 })
        #expect(failure(stale, leaf: expired)?.reason == .expired)
        #expect(failure(stale)?.reason == .revocationUnknown)
    }

    @Test func everyPrefixIsRefused() throws {
        let good = try root.revocationList(RevocationListTemplate().with { $0.revoked = [revoked] })
        for count in 0..<good.count {
            #expect(throws: RevocationListFault.self) { try RevocationList(der: Array(good[..<count])) }
        }
    }

    /// Lists that OpenSSL would silently ignore.
    @Test(arguments: [
        (RevocationListTemplate().with { $0.nextUpdate = nil }, "it has no nextUpdate"),
        (
            RevocationListTemplate().with { $0.extensions = [("2.5.29.27", true, DERWriter.integer(1))] },
            "a delta list"
        ),
        (
            RevocationListTemplate().with {
                $0.extensions = [("2.5.29.28", true, DERWriter.sequence(DERWriter.value(0x84, [0xFF])))]
            }, "an indirect list"
        ),
        (
            RevocationListTemplate().with {
                $0.extensions = [("2.5.29.28", true, DERWriter.sequence(DERWriter.value(0x83, [0x06, 0x40])))]
            }, "a list of some reasons only"
        ),
        (
            RevocationListTemplate().with {
                $0.extensions = [("2.5.29.28", true, DERWriter.sequence(DERWriter.value(0x85, [0xFF])))]
            }, "a list of attribute certificates"
        ),
        (
            RevocationListTemplate().with { $0.extensions = [("2.5.29.28", true, [0x30])] },
            "its issuingDistributionPoint can't be read"
        ),
    ])
    func listsThatWouldProtectNobody(_ template: RevocationListTemplate, _ words: String) throws {
        let bytes = try root.revocationList(template)
        let fault = #expect(throws: RevocationListFault.self) { try RevocationList(der: bytes) }
        #expect(fault?.reason.hasPrefix(words) == true)
    }

    // MARK: Bed

    private func lists(_ encodings: [UInt8]...) throws -> RevocationLists {
        RevocationLists(try encodings.map { try RevocationList(der: $0) })
    }

    private func failure(
        _ lists: RevocationLists, leaf: HeldCertificate? = nil, anchor: HeldCertificate? = nil, partial: Bool = false
    ) -> VerificationFailure? {
        do {
            let chain = try (leaf ?? self.leaf).chain.map { try Certificate(der: $0.der) }
            let options = VerificationOptions(
                name: .dns("api.test"), time: Self.now, allowsPartialChain: partial, revocationLists: lists)
            let presented = PresentedChain(leaf: chain[0], rest: Array(chain.dropFirst()))
            let anchors = TrustAnchors([try Certificate(der: (anchor ?? root).der)])
            if case .failure(let failure) = anchors.verify(presented, options: options) { return failure }
        } catch { Issue.record(error) }
        return nil
    }

    private static func pem(_ der: [UInt8]) -> String { HeldCertificate.pem(der, label: "X509 CRL") }
}
