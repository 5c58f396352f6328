import PinproxySecurity
import PinproxyTLS
import PinproxyTestAuthority
import Testing

/// Problems of a local authority that don't keep it from starting.
@Suite struct AuthorityReviewTests {
    private static let now = CertificateTemplate.now
    private static let day = CertificateTemplate.day

    private let directory: TemporaryDirectory
    private let root: HeldCertificate

    init() throws {
        directory = try TemporaryDirectory()
        root = try HeldCertificate.root("Company Root")
    }

    private static func constraints(
        _ kind: UInt8, _ tag: UInt8, _ bytes: [UInt8]
    ) -> [(identifier: String, isCritical: Bool, contents: [UInt8])] {
        let subtree = DERWriter.sequence(DERWriter.value(tag, bytes))
        return [("2.5.29.30", true, DERWriter.sequence(DERWriter.value(kind, subtree)))]
    }

    private func remarks(_ own: HeldCertificate, at time: Int64 = now, hosts: [String] = []) throws -> [String] {
        let issuers = try own.issuers.map { try Certificate(der: $0.der) }
        return try AuthorityReview(Certificate(der: own.der), issuers: issuers, at: time).remarks(
            hosts: hosts.map(ServerName.init(host:)))
    }

    /// Why a client that trusts the top of the chain refuses a certificate of the authority, if it does.
    private func refusal(
        _ own: HeldCertificate, _ host: String = "api.test", file: String = "own"
    ) throws -> VerificationFailure.Reason? {
        let pair = AuthorityFiles(
            certificate: try directory.write(own.chainPEM + (own.issuers.last?.pem ?? ""), "\(file).pem"),
            key: try directory.write(own.keyPEM, "\(file).key", mode: 0o600))
        let identity = try pair.load(at: Self.now).mint(for: .dns(host), at: Self.now, lifetime: Self.day)
        let anchors = TrustAnchors([try (own.issuers.last ?? own).parsed])
        let presented = PresentedChain(leaf: identity.leaf, rest: Array(identity.chain.dropFirst()))
        let result = anchors.verify(presented, options: VerificationOptions(name: .dns(host), time: Self.now))
        return if case .failure(let failure) = result { failure.reason } else { nil }
    }

    @Test func nothingIsWrongWithTheUsualOnes() throws {
        let own = try HeldCertificate.selfSigned(.root("Own").with { $0.basicConstraints = .authority(pathLength: 0) })
        #expect(try remarks(own, hosts: ["api.test", "192.0.2.1"]) == [])
        let middle = try root.issue(.intermediate("Company Middle", pathLength: 1))
        let below = try middle.issue(.intermediate("Company Proxies"))
        #expect(try remarks(below, hosts: ["api.test"]) == [])
        #expect(try refusal(below) == nil)
        // With no known authority above it.
        #expect(try AuthorityReview(Certificate(der: below.der), issuers: [], at: Self.now).remarks(hosts: []) == [])
    }

    @Test func nameConstraints() throws {
        let own = try root.issue(
            .intermediate("Proxies").with { $0.extensions = Self.constraints(0xA0, 0x82, Array("corp.test".utf8)) })
        #expect(
            try remarks(own, hosts: ["a.corp.test", "api.test", "www.test", "x.test", "y.test"]) == [
                "the name constraints of CN=Proxies hold for the proxy's certificates (permits corp.test): clients "
                    + "refuse those for other hosts, such as api.test, www.test, x.test and 1 more of the pin file"
            ])
        #expect(try remarks(own).count == 1)
        #expect(try refusal(own) == .nameConstraint)
        #expect(try refusal(own, "a.corp.test", file: "second") == nil)
        // Constraints of an authority above it.
        let constrained = try root.issue(
            .intermediate("Middle", pathLength: nil).with {
                $0.extensions = Self.constraints(0xA1, 0x87, [192, 0, 2, 0, 255, 255, 255, 0])
            })
        let below = try constrained.issue(.intermediate("Proxies"))
        #expect(
            try remarks(below, hosts: ["192.0.2.1", "api.test"]) == [
                "the name constraints of CN=Middle hold for the proxy's certificates (excludes 192.0.2.0/24): clients "
                    + "refuse those for other hosts, such as 192.0.2.1 of the pin file"
            ])
        let broken = try root.issue(
            .intermediate("Broken").with { $0.extensions = [("2.5.29.30", true, DERWriter.sequence())] })
        #expect(try remarks(broken).first?.contains("its name constraints are empty") == true)
    }

    @Test func pathLengths() throws {
        let closed = try root.issue(.intermediate("Closed", pathLength: 0))
        let own = try closed.issue(.intermediate("Proxies"))
        #expect(
            try remarks(own) == [
                "CN=Closed allows 0 authorities below it (path length 0), and with the local authority there is 1: "
                    + "clients that trust it refuse the proxy's certificates"
            ])
        #expect(try refusal(own) == .pathTooLong)
        let short = try HeldCertificate.selfSigned(
            .root("Short").with { $0.basicConstraints = .authority(pathLength: 1) })
        let deep = try short.issue(.intermediate("Middle", pathLength: nil)).issue(.intermediate("Proxies"))
        #expect(
            try remarks(deep).first?.contains(
                "CN=Short allows 1 authority below it (path length 1), and with the local authority there are 2")
                == true)
        #expect(try refusal(deep, file: "deep") == .pathTooLong)
        // A self-issued certificate isn't counted.
        let key = try TestKey()
        let old = try root.issue(.intermediate("Proxies", pathLength: 0).with { $0.keyPair = key })
        let rolled = try old.issue(.intermediate("Proxies", pathLength: 0))
        #expect(try remarks(rolled) == [])
    }

    @Test(arguments: [(Int64(31), ""), (30, "expires"), (0, "expires"), (-1, "expired")])
    func endings(_ days: Int64, _ word: String) throws {
        let own = try HeldCertificate.selfSigned(.root("Own").with { $0.notAfter = Self.now + days * Self.day })
        let found = try remarks(own)
        #expect(found.isEmpty == word.isEmpty, "\(found)")
        if !word.isEmpty { #expect(found.first?.hasPrefix("the local authority \(word) 20") == true, "\(found)") }
    }

    @Test func notYetValid() throws {
        let own = try HeldCertificate.selfSigned(.root("Own").with { $0.notBefore = Self.now + 1 })
        #expect(try remarks(own) == ["the local authority is not valid before 2030-01-01"])
    }

    @Test func anIssuerThatClientsRefuse() throws {
        let expired = try root.issue(.intermediate("Old Middle", pathLength: nil).with { $0.notAfter = Self.now - 1 })
        let own = try expired.issue(.intermediate("Proxies"))
        #expect(
            try remarks(own) == [
                """
                clients that trust CN=Company Root refuse the local authority: issuing certificate expired 2029-12-31 \
                (CN=Old Middle)
                """
            ])
        let weak = try root.issue(.intermediate("Weak", pathLength: nil).with { $0.key = .rsa(1024) })
        #expect(try remarks(weak.issue(.intermediate("Proxies"))).first?.contains("RSA 1024") == true)
    }
}
