import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// OCSP responses, judged at a time that the test sets.
@Suite struct StatusTests {
    static let now = CertificateTemplate.now
    static let day = CertificateTemplate.day
    static let ocspSigning = "1.3.6.1.5.5.7.3.9"

    let root: HeldCertificate
    let issuer: HeldCertificate
    let leaf: HeldCertificate

    init() throws {
        root = try HeldCertificate.root()
        issuer = try root.issue(.intermediate("Issuer"))
        leaf = try issuer.issue(.leaf("api.test"))
    }

    @Test func good() throws {
        #expect(
            try status() == .success(OCSPStatus(thisUpdate: Self.now - Self.day, validUntil: Self.now + Self.day)))
        #expect(try status { $0.identifierDigest = .sha256 }.isGood)
    }

    @Test(arguments: [TestKey.Kind.p384, .rsa(2048), .ed25519])
    func issuersOfAllKinds(_ kind: TestKey.Kind) throws {
        let issuer = try root.issue(.intermediate("Issuer").with { $0.key = kind })
        let leaf = try issuer.issue(.leaf("api.test"))
        #expect(try check(leaf, issuer.statusResponse(for: leaf)).isGood)
    }

    @Test func notGood() throws {
        let revoked = try status { $0.status = .revoked(date: Self.now - 3 * Self.day, reason: 1) }
        #expect(revoked == .failure(.revoked(date: Self.now - 3 * Self.day, reason: RevocationReason(code: 1))))
        #expect(
            revoked.failure?.description
                == "the OCSP response says that the certificate was revoked on 2029-12-29 (key compromise)")
        let plain = try status { $0.status = .revoked(date: Self.now, reason: nil) }
        #expect(plain == .failure(.revoked(date: Self.now, reason: nil)))
        #expect(try status { $0.status = .unknown } == .failure(.unknown))
    }

    /// thisUpdate and nextUpdate relative to now, and the failure if there is one.
    static let dates: [(Int64, Int64?, OCSPFailure?)] = [
        (0, 0, nil), (300, 400, nil), (301, 400, .notYetValid(until: now + 301)), (-100, -1, .expired(since: now - 1)),
        (-7 * day, nil, nil), (-7 * day - 1, nil, .expired(since: now - 1)),
        (-1, -2, .malformed("its nextUpdate can't be read or is before its thisUpdate")),
    ]

    @Test(arguments: dates)
    func byOurClock(_ this: Int64, _ next: Int64?, _ expected: OCSPFailure?) throws {
        let result = try status {
            $0.thisUpdate = Self.now + this
            $0.nextUpdate = next.map { Self.now + $0 }
        }
        #expect(result.failure == expected)
    }

    @Test func aRevocationIsNotTakenBackByTime() throws {
        let result = try status {
            $0.status = .revoked(date: 0, reason: nil)
            $0.nextUpdate = Self.now - 1
        }
        #expect(result.failure?.isRevocation == true)
    }

    @Test func anotherCertificatesResponse() throws {
        let other = try issuer.issue(.leaf("api.test"))
        #expect(try check(leaf, issuer.statusResponse(for: other)) == .failure(.wrongCertificate))
        // The same serial number of another issuer.
        let (foreign, serial) = (try root.issue(.intermediate("Foreign")), [UInt8(7)])
        let (mine, theirs) = try (
            issuer.issue(.leaf("api.test").with { $0.serial = serial }),
            foreign.issue(.leaf("api.test").with { $0.serial = serial })
        )
        #expect(try check(mine, foreign.statusResponse(for: theirs)) == .failure(.wrongCertificate))
    }

    @Test func signatures() throws {
        #expect(try status { $0.breaksSignature = true }.isBadSignature)
        #expect(
            try status { $0.digest = .sha1 }.failure == .badSignature("the algorithm ecdsa-with-SHA1 isn't accepted"))
        // A match by the issuer's name, but not by its key.
        let twin = try root.issue(.intermediate("Issuer"))
        #expect(try !check(leaf, twin.statusResponse(for: leaf)).isGood)
        #expect(try status { $0.responder = twin }.isBadSignature)
        // The root is not the issuer.
        #expect(try status { $0.responder = root }.isBadSignature)
    }

    @Test func delegatedResponders() throws {
        func result(
            by issuer: HeldCertificate? = nil, _ change: (inout CertificateTemplate) -> Void
        ) throws -> Result<
            OCSPStatus, OCSPFailure
        > {
            let template = CertificateTemplate(commonName: "Responder").with {
                $0.keyUsage = [.digitalSignature]
                $0.extendedKeyUsage = [Self.ocspSigning]
                change(&$0)
            }
            let responder = try (issuer ?? self.issuer).issue(template)
            return try status { $0.responder = responder }
        }
        #expect(try result { _ in }.isGood)
        let undelegated = try result { $0.extendedKeyUsage = [CertificateTemplate.serverAuth] }
        #expect(
            undelegated
                == .failure(
                    .badSignature("its signer CN=Responder has no delegation (extendedKeyUsage OCSPSigning)")))
        #expect(try result { $0.extendedKeyUsage = [] }.isBadSignature)
        #expect(try result { $0.notAfter = Self.now - 1 }.isBadSignature)
        #expect(try result { $0.notBefore = Self.now + 1 }.isBadSignature)
        #expect(try result { $0.breaksSignature = true }.isBadSignature)
        #expect(try result { $0.key = .rsa(1024) }.isBadSignature)
        #expect(try result(by: root) { _ in }.isBadSignature)
        #expect(try result(by: leaf) { _ in }.isBadSignature)
    }

    @Test func aLeafIsNoResponderForItself() throws {
        #expect(try status { $0.responder = leaf }.isBadSignature)
    }

    @Test func brokenResponses() throws {
        #expect(check(leaf, []).isMalformed)
        #expect(check(leaf, Array("nonsense".utf8)).isMalformed)
        let whole = try issuer.statusResponse(for: leaf)
        #expect(check(leaf, whole + [0]) == .failure(.malformed("there are bytes after it")))
        for count in 0..<whole.count { #expect(check(leaf, Array(whole[..<count])).isMalformed) }
        #expect(check(leaf, HeldCertificate.statusError(3)) == .failure(.errorStatus("trylater")))
    }

    /// A responder's certificate is checked like a server's, before OpenSSL parses the response.
    @Test func costlyCertificatesInIt() throws {
        let points = CostlyCertificates.relativeDistributionPoints(2)
        let responder = try issuer.issue(
            CertificateTemplate(commonName: "Responder").with {
                $0.extendedKeyUsage = [Self.ocspSigning]
                $0.extensions = [(CostlyCertificates.distributionPoints, false, points)]
            })
        let response = try issuer.statusResponse(for: leaf, StatusTemplate().with { $0.responder = responder })
        let chain = VerifiedChain(certificates: try ([leaf] + leaf.issuers).map { try Certificate(der: $0.der) })
        let parsed = ParsedObjects.count { chain.checkStatus(response, at: Self.now) }
        #expect(parsed.certificates == 0)
        #expect(
            parsed.result.failure?.description
                == "the OCSP response is broken: certificate 1 in it is refused: its CRL distribution points "
                + "are relative to the issuer's name (nameRelativeToCRLIssuer)")
        // Without them it is parsed.
        let usual = try issuer.issue(
            CertificateTemplate(commonName: "Responder").with { $0.extendedKeyUsage = [Self.ocspSigning] })
        let good = try issuer.statusResponse(for: leaf, StatusTemplate().with { $0.responder = usual })
        #expect(check(leaf, good).isGood)
        #expect(ParsedObjects.count { chain.checkStatus(good, at: Self.now) }.certificates > 0)
        for count in 0..<good.count {
            #expect(throws: CertificateLimits.Fault.notDER) {
                try CertificateLimits.check(statusResponse: Array(good[..<count]).span)
            }
        }
    }

    @Test func tooManyCertificatesInIt() throws {
        let empty = DERWriter.sequence()
        func response(_ count: Int) -> [UInt8] {
            let certificates = (0..<count).flatMap { _ in issuer.der }
            let basic = DERWriter.sequence(
                empty, empty, DERWriter.bits([1]), DERWriter.value(0xA0, DERWriter.sequence(certificates)))
            let typed = DERWriter.sequence(DERWriter.identifier("1.3.6.1.5.5.7.48.1.1"), DERWriter.octets(basic))
            return DERWriter.sequence(DERWriter.value(0x0A, [0]), DERWriter.value(0xA0, typed))
        }
        #expect(throws: Never.self) { try CertificateLimits.check(statusResponse: response(32).span) }
        #expect(throws: CertificateLimits.Fault.costly("it has more than 32 certificates in it")) {
            try CertificateLimits.check(statusResponse: response(33).span)
        }
    }

    /// A changed byte never yields a good response with other contents.
    @Test func everyChangedByteIsNoticed() throws {
        let whole = try issuer.statusResponse(for: leaf)
        for index in whole.indices {
            var bytes = whole
            bytes[index] ^= 0x04
            if check(leaf, bytes).isGood { #expect(index < 40, "byte \(index)") }
        }
    }

    @Test func aPinnedLeafHasNoIssuer() throws {
        let chain = VerifiedChain(certificates: [try Certificate(der: leaf.der)])
        #expect(chain.checkStatus(try issuer.statusResponse(for: leaf), at: Self.now) == .failure(.noIssuer))
    }

    @Test func mustStaple() throws {
        func certificate(_ contents: [UInt8]?) throws -> Certificate {
            let template = CertificateTemplate.leaf("api.test").with {
                if let contents { $0.extensions = [("1.3.6.1.5.5.7.1.24", false, contents)] }
            }
            return try Certificate(der: issuer.issue(template).der)
        }
        #expect(try !certificate(nil).mustStaple)
        #expect(try certificate(DERWriter.sequence(DERWriter.integer(5))).mustStaple)
        #expect(try certificate(DERWriter.sequence(DERWriter.integer(17), DERWriter.integer(5))).mustStaple)
        #expect(try !certificate(DERWriter.sequence(DERWriter.integer(17))).mustStaple)
        #expect(try !certificate(DERWriter.sequence()).mustStaple)
        #expect(try certificate([0x30]).mustStaple)
    }

    // MARK: Bed

    private func status(_ change: (inout StatusTemplate) -> Void = { _ in }) throws -> Result<OCSPStatus, OCSPFailure> {
        try check(leaf, issuer.statusResponse(for: leaf, StatusTemplate().with(change)))
    }

    private func check(_ leaf: HeldCertificate, _ response: [UInt8]) -> Result<OCSPStatus, OCSPFailure> {
        do {
            let chain = VerifiedChain(certificates: try ([leaf] + leaf.issuers).map { try Certificate(der: $0.der) })
            return chain.checkStatus(response, at: Self.now)
        } catch {
            Issue.record(error)
            return .failure(.noIssuer)
        }
    }
}

extension Result<OCSPStatus, OCSPFailure> {
    var failure: OCSPFailure? { if case .failure(let failure) = self { failure } else { nil } }
    var isGood: Bool { failure == nil }
    var isBadSignature: Bool { if case .badSignature? = failure { true } else { false } }
    var isMalformed: Bool { if case .malformed? = failure { true } else { false } }
}
