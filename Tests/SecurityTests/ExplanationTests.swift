import Foundation
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

/// The output of `explain` comes from the verdict that the proxy would give, and never contradicts it.
@Suite struct ExplanationTests {
    private func explain(
        _ policy: SecurityPolicy, _ presented: PresentedChain, _ chains: Chains, at time: UnixTime = Chains.now
    ) throws -> Explanation {
        policy.explain(presented, host: Chains.host, anchors: try chains.anchors, at: time)
    }

    /// Every cell of the truth table against every server: a check failed if and only if it was refused.
    @Test(arguments: TruthTableTests.cells)
    func aCheckFailsExactlyWhereTheVerdictRefuses(_ cell: TruthTableTests.Cell) throws {
        let (trusted, servers) = try TruthTableTests.servers()
        let pins = try cell.hasPins ? TruthTableTests.pins(of: servers, for: cell.mode) : []
        let anchors = TrustAnchors([try trusted.parsed])
        for enforcement in Enforcement.allCases {
            let policy = SecurityPolicy(
                mode: cell.mode, pins: PinSet(pins), allowsInvalidCertificates: cell.allowsInvalid,
                validatesDomainName: cell.validatesName, enforcement: enforcement)
            for (server, held) in servers {
                let presented = try held.presented()
                let verdict = policy.evaluate(presented, host: Chains.host, anchors: anchors, at: Chains.now)
                let explanation = policy.explain(presented, host: Chains.host, anchors: anchors, at: Chains.now)
                let summary = explanation.checks.map { "\($0.name) \($0.outcome)" }.joined(separator: ", ")
                #expect(explanation.verdict.isAccepted == verdict.isAccepted)
                #expect(
                    explanation.checks.contains { $0.outcome == .failed } == !verdict.isAccepted,
                    "\(server), \(enforcement): \(summary)")
                #expect(
                    explanation.checks.contains { $0.outcome == .reported } == (verdict.report != nil),
                    "\(server), \(enforcement): \(summary)")
                #expect(explanation.verdict.refusal?.details == verdict.refusal?.details)
            }
        }
    }

    @Test func eachPinSaysWhereItMatches() throws {
        let chains = try Chains()
        let policy = SecurityPolicy(
            mode: .publicKey,
            pins: PinSet([try Pin(text: wrongPin, for: .publicKey), try chains.intermediate.keyPin()]))
        let pins = try #require(
            try explain(policy, try chains.presented, chains).checks.first { $0.name == .pins })
        #expect(pins.name == .pins)
        #expect(pins.outcome == .passed)
        #expect(pins.lines[1] == "\(wrongPin): not in the chain")
        #expect(pins.lines[2].hasSuffix("matches the issuer (CN=Test Intermediate)"))
    }

    @Test func aPinInTheWrongPlaceIsSeenThere() throws {
        let chains = try Chains()
        let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([try chains.leaf.keyPin()]), position: .root)
        let pins = try #require(
            try explain(policy, try chains.presented, chains).checks.first { $0.name == .pins })
        #expect(pins.outcome == .failed)
        #expect(pins.lines[1].hasSuffix("is the leaf's, where position: root does not allow it to match"))
    }

    @Test func theChainAndTheNamesThatWereComparedAreListed() throws {
        let chains = try Chains()
        let checks = try explain(SecurityPolicy(), try chains.presented, chains).checks
        let anchors = try #require(checks.first { $0.name == .anchors })
        #expect(anchors.lines.count == 4)
        #expect(anchors.lines[1].hasPrefix("leaf: CN=api.test, EC P-256, sha256/"))
        #expect(anchors.lines[3].hasPrefix("anchor: CN=Test Root"))
        #expect(checks.first { $0.name == .name }?.lines == ["api.test against the certificate's api.test"])
    }

    /// An unrelated list doesn't protect this host, and a check that was not made has not passed.
    @Test func issuersThatNoListIsForAreNamed() throws {
        let chains = try Chains()
        func check(_ lists: HeldCertificate..., policy mode: PinningMode = .none, invalid: Bool = false) throws -> Check
        {
            let files = try lists.map { try RevocationListFile($0.revocationList()) }
            defer { withExtendedLifetime(files) {} }
            let policy = SecurityPolicy(
                mode: mode, pins: mode == .none ? PinSet() : PinSet([try chains.root.certificatePin()]),
                allowsInvalidCertificates: invalid,
                requirements: TrustRequirements(revocationLists: try RevocationLists.load(files.map(\.path))))
            let explanation = try explain(policy, try chains.presented, chains)
            #expect(explanation.verdict.isAccepted)
            return try #require(explanation.checks.first { $0.name == .revocation })
        }
        let missing = { (name: String) in "no list for CN=\(name): its certificates are not checked" }
        let none = try check(chains.stranger)
        #expect(none.outcome == .skipped)
        #expect(
            none.lines == [
                "no list of crl_files is for the chain, so nothing was checked", missing("Test Intermediate"),
                missing("Test Root"),
            ])
        let one = try check(chains.intermediate, chains.stranger)
        #expect(one.outcome == .passed)
        #expect(one.lines.count == 3)
        #expect(one.lines.first == "no certificate of the chain is on its issuer's list")
        #expect(one.lines[1].contains(": list of CN=Test Intermediate, valid until 2030-01-02, in 1 day"))
        #expect(one.lines.last == missing("Test Root"))
        let both = try check(chains.intermediate, chains.root)
        #expect(both.outcome == .passed)
        #expect(both.lines.count == 3 && !both.lines.contains { $0.hasPrefix("no list") })
        // The name is the issuer's, but the key isn't.
        let namesake = try check(HeldCertificate.selfSigned(.root("Test Intermediate")))
        #expect(namesake.outcome == .skipped)
        #expect(namesake.lines.last?.contains("this list of CN=Test Intermediate is not signed by the key of") == true)
        #expect(try check(chains.root, policy: .certificate, invalid: true).lines.last == missing("Test Intermediate"))
    }

    /// A list in a file that is deleted with this object.
    private final class RevocationListFile {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("pinproxy-\(UUID().uuidString)").path

        init(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    @Test func anotherDayIsExplainedByThatDay() throws {
        let chains = try Chains()
        let later = Chains.now + 40 * CertificateTemplate.day
        let explanation = try explain(SecurityPolicy(), try chains.presented, chains, at: later)
        #expect(explanation.verdict.refusal?.kind == "trust: expired")
        #expect(explanation.checks.first { $0.name == .dates }?.outcome == .failed)
        #expect(explanation.checks.first { $0.name == .dates }?.lines[0].hasPrefix("2030-02-10") == true)
    }

    /// OpenSSL parses such a certificate; its dates are further apart than any number holds.
    @Test func datesThatAreNoneAreRefusedAndExplained() throws {
        let chains = try Chains()
        var der = chains.leaf.der
        let dates = [CertificateTemplate.leaf().notBefore, CertificateTemplate.leaf().notAfter]
        for date in dates.map({ DERWriter.time($0) }) {
            let start = try #require(der.indices.first { der[$0...].starts(with: date) })
            for index in (start + 2)..<(start + date.count) { der[index] = UInt8(ascii: "X") }
        }
        let presented = PresentedChain(leaf: try Certificate(der: der), rest: [try chains.intermediate.parsed])
        let policy = SecurityPolicy(requirements: TrustRequirements(maximumLeafLifetime: 398 * CertificateTemplate.day))
        let explanation = try explain(policy, presented, chains)
        #expect(!explanation.verdict.isAccepted)
        #expect(explanation.checks.first { $0.name == .lifetime }?.outcome == .failed)
    }
}
