import Foundation
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

/// A server's evidence beside its chain, judged under each setting, and the requirements on chains besides pins.
@Suite struct ConfirmationTests {
    private static let now = Chains.now

    /// What a server may staple.
    enum Staple: String, CaseIterable {
        case nothing, good, revoked, unknown, outOfDate, aboutAnother, forged, garbage, tryLater
    }

    private func response(_ staple: Staple, _ chains: Chains) throws -> [UInt8]? {
        let (leaf, issuer) = (chains.leaf, chains.intermediate)
        func made(_ change: (inout StatusTemplate) -> Void) throws -> [UInt8] {
            try issuer.statusResponse(for: leaf, StatusTemplate().with(change))
        }
        switch staple {
        case .nothing: return nil
        case .good: return try made { _ in }
        case .revoked: return try made { $0.status = .revoked(date: Self.now - 1000, reason: 1) }
        case .unknown: return try made { $0.status = .unknown }
        case .outOfDate: return try made { $0.nextUpdate = Self.now - 1 }
        case .aboutAnother: return try issuer.statusResponse(for: try issuer.issue(.leaf("other.test")))
        case .forged: return try made { $0.breaksSignature = true }
        case .garbage: return [1, 2, 3]
        case .tryLater: return HeldCertificate.statusError(3)
        }
    }

    private static let mustStaple = CertificateTemplate.leaf("api.test").with {
        // TLS Feature: status_request (RFC 7633).
        $0.extensions = [
            (identifier: "1.3.6.1.5.5.7.1.24", isCritical: false, contents: [0x30, 0x03, 0x02, 0x01, 0x05])
        ]
    }

    private func verdict(
        _ requirements: TrustRequirements, _ chains: Chains, _ evidence: PeerEvidence,
        mode: PinningMode = .none, pins: [Pin] = [], enforcement: Enforcement = .enforce
    ) throws -> Verdict {
        let policy = SecurityPolicy(
            mode: mode, pins: PinSet(pins), enforcement: enforcement, requirements: requirements)
        let first = policy.evaluate(
            try chains.presented, host: Chains.host, anchors: try chains.anchors, at: Self.now)
        let confirmed = policy.confirm(first, with: evidence, at: Self.now)
        // The explanation agrees with the decision.
        let explanation = policy.explain(
            try chains.presented, evidence: evidence, host: Chains.host, anchors: try chains.anchors, at: Self.now)
        #expect(explanation.verdict.isAccepted == confirmed.isAccepted)
        #expect(explanation.checks.contains { $0.outcome == .failed } == !confirmed.isAccepted)
        return confirmed
    }

    @Test(arguments: OCSPStapling.allCases, [false, true])
    func stapling(_ stapling: OCSPStapling, _ isPromised: Bool) throws {
        let chains = try isPromised ? Chains(leaf: Self.mustStaple) : Chains()
        for staple in Staple.allCases {
            let evidence = PeerEvidence(ocspResponse: try response(staple, chains))
            let verdict = try verdict(TrustRequirements(stapling: stapling), chains, evidence)
            let expected: Bool =
                switch staple {
                case _ where stapling == .ignore: true
                case .good: true
                case .nothing, .tryLater: stapling == .ifStapled && !isPromised
                default: false
                }
            #expect(verdict.isAccepted == expected, "\(staple): \(verdict.refusal?.kind ?? "accepted")")
            if let refusal = verdict.refusal {
                #expect(!refusal.isPinFailure)
                #expect(refusal.title.hasSuffix(staple == .revoked ? "revoked" : "no good OCSP response"))
                #expect(refusal.title.contains("api.test"))
                #expect(refusal.details.contains("What to do"))
                #expect(verdict.validUntil == .min)
            }
        }
    }

    @Test func aVerdictHoldsNoLongerThanTheResponseThatItCameFrom() throws {
        let chains = try Chains()
        let good = PeerEvidence(ocspResponse: try response(.good, chains))
        // A response and a certificate are still valid in their last second.
        #expect(try verdict(TrustRequirements(), chains, good).validUntil == Self.now + CertificateTemplate.day + 1)
        #expect(
            try verdict(TrustRequirements(), chains, PeerEvidence()).validUntil
                == Self.now + 30 * CertificateTemplate.day + 1)
    }

    @Test func aMismatchThatIsOnlyReportedDoesntLetARevokedCertificatePass() throws {
        let chains = try Chains()
        let pins = [try Pin(text: wrongPin, for: .publicKey)]
        let revoked = PeerEvidence(ocspResponse: try response(.revoked, chains))
        let verdict = try verdict(
            TrustRequirements(), chains, revoked, mode: .publicKey, pins: pins, enforcement: .report)
        #expect(!verdict.isAccepted)
        #expect(verdict.report == nil)
    }

    @Test func aPinnedLeafIsJudgedByTheChainToTheAnchors() throws {
        let chains = try Chains()
        for (staple, isAccepted) in [(Staple.good, true), (.revoked, false), (.nothing, false)] {
            let evidence = PeerEvidence(ocspResponse: try response(staple, chains))
            let verdict = try verdict(
                TrustRequirements(stapling: .require), chains, evidence, mode: .certificate,
                pins: [try chains.leaf.certificatePin()])
            #expect(verdict.isAccepted == isAccepted, "\(staple)")
        }
    }

    @Test func whatWasRefusedStaysRefused() throws {
        let chains = try Chains()
        let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([try Pin(text: wrongPin, for: .publicKey)]))
        let refused = policy.evaluate(
            try chains.presented, host: Chains.host, anchors: try chains.anchors, at: Self.now)
        let evidence = PeerEvidence(ocspResponse: try response(.good, chains))
        #expect(policy.confirm(refused, with: evidence, at: Self.now).refusal?.kind == "pinMismatch")
    }

    // MARK: Logs, lists, lifetime

    /// A file that is deleted after the test.
    private func withFile<Result>(_ contents: [UInt8], _ body: (String) throws -> Result) throws -> Result {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("pinproxy-\(UUID().uuidString)").path
        try Data(contents).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try body(path)
    }

    @Test func certificatesMustBeInPublicLogsWhereThatIsAsked() throws {
        let known = [try TestLog("Argon"), try TestLog("Boron"), try TestLog("Carbon")]
        let logs = try withFile(Array(TestLog.list(Array(known.prefix(2))).utf8)) { try TransparencyLogs.load($0) }
        let requirements = TrustRequirements(transparencyLogs: logs)
        let chains = try Chains()
        func verdict(_ logs: [TestLog]) throws -> Verdict {
            let timestamps = try TestLog.timestamps(logs.map { TestLog.Promise($0) }, for: chains.leaf)
            return try self.verdict(requirements, chains, PeerEvidence(timestamps: timestamps))
        }
        #expect(try verdict([known[0], known[1]]).isAccepted)
        #expect(try verdict([known[0], known[2]]).refusal?.kind == "transparency")
        #expect(try verdict([known[0], known[0]]).refusal?.kind == "transparency")
        let refusal = try #require(try verdict([]).refusal)
        #expect(refusal.title == "Certificate verification failure for api.test: not in public logs")
        #expect(refusal.details.contains("Timestamps:\n    none"))
    }

    @Test func aCertificateOnItsIssuersListIsRefusedAndAnOldListRefuses() throws {
        let serial: [UInt8] = [0x0A, 0xBC]
        let chains = try Chains(leaf: .leaf("api.test").with { $0.serial = serial })
        func verdict(_ change: (inout RevocationListTemplate) -> Void) throws -> Verdict {
            let list = try chains.intermediate.revocationList(RevocationListTemplate().with(change))
            let lists = try withFile(list) { try RevocationLists.load([$0]) }
            return try self.verdict(TrustRequirements(revocationLists: lists), chains, PeerEvidence())
        }
        #expect(try verdict { _ in }.isAccepted)
        // An idle connection or a TLS session isn't used beyond the list that allowed it.
        #expect(try verdict { $0.nextUpdate = Self.now + 60 }.validUntil == Self.now + 61)
        #expect(try verdict { $0.nextUpdate = Self.now }.validUntil == Self.now + 1)
        #expect(try verdict { $0.revoked = [(serial, Self.now - 1000, 1)] }.refusal?.kind == "trust: revoked")
        #expect(try verdict { $0.nextUpdate = Self.now - 1 }.refusal?.kind == "trust: revocationUnknown")
    }

    /// Otherwise a connection would end before it is used.
    @Test func anOldListThatHasNoSayEndsNoVerdict() throws {
        let namesake = try HeldCertificate.selfSigned(.root("Test Intermediate"))
        let list = try namesake.revocationList(RevocationListTemplate().with { $0.nextUpdate = Self.now - 1 })
        let lists = try withFile(list) { try RevocationLists.load([$0]) }
        let verdict = try verdict(TrustRequirements(revocationLists: lists), try Chains(), PeerEvidence())
        #expect(verdict.isAccepted)
        #expect(verdict.validUntil == Self.now + 30 * CertificateTemplate.day + 1)
    }

    @Test(arguments: [(59, false), (61, true)] as [(Int64, Bool)])
    func aLeafMayNotLiveLongerThanAsked(_ days: Int64, _ isAccepted: Bool) throws {
        let requirements = TrustRequirements(maximumLeafLifetime: days * CertificateTemplate.day)
        let verdict = try verdict(requirements, try Chains(), PeerEvidence())
        #expect(verdict.isAccepted == isAccepted)
        #expect(isAccepted || verdict.refusal?.kind == "trust: lifetimeTooLong")
    }

    /// The configuration refuses such settings; a policy that has them anyway accepts no server.
    @Test(arguments: [
        SecurityPolicy(
            allowsInvalidCertificates: true, validatesDomainName: false,
            requirements: TrustRequirements(stapling: .require)),
        SecurityPolicy(
            allowsInvalidCertificates: true, validatesDomainName: false,
            requirements: TrustRequirements(maximumLeafLifetime: .max)),
    ])
    func whatIsAskedOfAChainIsNotForgottenWhereNoneIsVerified(_ policy: SecurityPolicy) throws {
        let chains = try Chains()
        let explanation = policy.explain(
            try chains.presented, host: Chains.host, anchors: try chains.anchors, at: Self.now)
        #expect(explanation.verdict.refusal?.kind.hasPrefix("contradiction") == true)
        #expect(explanation.checks.map(\.outcome) == [.failed])
    }

    @Test func policiesThatAskForOtherThingsAreToldApart() throws {
        let chains = try Chains()
        let lists = try withFile(try chains.intermediate.revocationList()) { try RevocationLists.load([$0]) }
        let logs = try withFile(Array(TestLog.list([try TestLog("Argon")]).utf8)) { try TransparencyLogs.load($0) }
        let digests = [
            TrustRequirements(), TrustRequirements(minimumTLS: .tls13), TrustRequirements(stapling: .require),
            TrustRequirements(revocationLists: lists), TrustRequirements(transparencyLogs: logs),
            TrustRequirements(maximumLeafLifetime: 86_400),
        ].map { SecurityPolicy(requirements: $0).digest }
        #expect(Set(digests).count == digests.count)
    }
}
