import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

/// Where pins match, and where they must not.
@Suite struct PinnedChainTests {
    let chains: Chains

    init() throws { chains = try Chains() }

    private func evaluate(
        _ policy: SecurityPolicy, _ presented: PresentedChain? = nil, anchors: TrustAnchors? = nil,
        at time: Int64 = Chains.now
    ) throws -> Verdict {
        policy.evaluate(
            try presented ?? chains.presented, host: Chains.host, anchors: try anchors ?? chains.anchors, at: time)
    }

    private func policy(
        _ mode: PinningMode, _ pins: [Pin], position: PinPosition = .any, enforcement: Enforcement = .enforce,
        invalid: Bool = false
    ) -> SecurityPolicy {
        SecurityPolicy(
            mode: mode, pins: PinSet(pins), allowsInvalidCertificates: invalid, position: position,
            enforcement: enforcement)
    }

    @Test(arguments: PinPosition.allCases)
    func eachPositionAdmitsItsOwnPlaceOnly(_ position: PinPosition) throws {
        let places = [PinPosition.leaf, .issuer, .root]
        for (depth, held) in [chains.leaf, chains.intermediate, chains.root].enumerated() {
            let mayMatch = position == .any || position == places[depth]
            for (mode, pin) in [(PinningMode.publicKey, try held.keyPin()), (.certificate, try held.certificatePin())] {
                let verdict = try evaluate(policy(mode, [pin], position: position))
                #expect(verdict.isAccepted == mayMatch, "\(mode), depth \(depth)")
                #expect(verdict.matchedPin == (mayMatch ? pin : nil))
                #expect(verdict.matchedDepth == (mayMatch ? depth : nil))
                #expect(
                    verdict.matchedDepth.flatMap { verdict.chain?.certificates[$0] }
                        == (mayMatch ? try held.parsed : nil))
                if !mayMatch { #expect(verdict.refusal?.details.contains("does not allow it there") == true) }
            }
        }
    }

    @Test func aChainThatIsTheLeafAlone() throws {
        let alone = try HeldCertificate.selfSigned(.leaf("api.test"))
        let pin = try alone.certificatePin()
        for position in [PinPosition.any, .leaf, .root] {
            let verdict = try evaluate(
                policy(.certificate, [pin], position: position, invalid: true), try alone.presented())
            #expect(verdict.isAccepted, "\(position): \(verdict.refusal?.kind ?? "")")
        }
        let issuer = try evaluate(policy(.certificate, [pin], position: .issuer, invalid: true), try alone.presented())
        #expect(issuer.refusal?.kind == "pinMismatch")
    }

    @Test func theBackupPinMatchesOnTheDayOfTheChange() throws {
        let backup = try chains.intermediate.issue(.leaf("api.test"))
        let policy = policy(.publicKey, [try chains.leaf.keyPin(), try backup.keyPin()])
        #expect(try evaluate(policy).matchedPin == chains.leaf.keyPin())
        #expect(try evaluate(policy, backup.presented()).matchedPin == backup.keyPin())
        let third = try chains.intermediate.issue(.leaf("api.test"))
        #expect(try evaluate(policy, third.presented()).refusal?.kind == "pinMismatch")
    }

    @Test func aRenewalWithTheSameKeyKeepsTheKeyPinOnly() throws {
        let renewed = try chains.intermediate.issue(.leaf("api.test").with { $0.keyPair = chains.leaf.key })
        #expect(try evaluate(policy(.publicKey, [chains.leaf.keyPin()]), renewed.presented()).isAccepted)
        let refusal = try evaluate(policy(.certificate, [chains.leaf.certificatePin()]), renewed.presented()).refusal
        #expect(refusal?.isPinFailure == true)
    }

    /// CVE-2016-2402: the pinned certificate is sent along with an unrelated valid chain.
    @Test(arguments: [PinningMode.publicKey, .certificate])
    func aPinnedCertificateMerelyAppendedProvesNothing(_ mode: PinningMode) throws {
        let other = try HeldCertificate.root("Other Trusted Root").issue(.leaf("api.test"))
        let anchors = TrustAnchors([try chains.root.parsed, try other.issuers[0].parsed])
        for pinned in [chains.leaf, chains.intermediate, chains.root] {
            let pin = mode == .certificate ? try pinned.certificatePin() : try pinned.keyPin()
            let presented = try other.presented(appending: chains.leaf, chains.intermediate, chains.root)
            let verdict = try evaluate(policy(mode, [pin]), presented, anchors: anchors)
            #expect(verdict.refusal?.isPinFailure == true)
            #expect(verdict.matchedPin == nil)
            #expect(verdict.refusal?.details.contains("is not part of the chain that verifies") == true)
            // The same where invalid certificates are allowed: only the leaf's key counts there.
            let lax = try evaluate(policy(mode, [pin], invalid: true), presented, anchors: anchors)
            #expect(lax.refusal?.isPinFailure == true)
        }
    }

    @Test func withInvalidCertificatesAllowedAnIssuersKeyDoesNotMatch() throws {
        let pins = [try chains.intermediate.keyPin(), try chains.root.keyPin()]
        #expect(try evaluate(policy(.publicKey, pins, invalid: true)).refusal?.kind == "pinMismatch")
        #expect(try evaluate(policy(.publicKey, pins)).isAccepted)
        for position in [PinPosition.issuer, .root] {
            let policy = policy(.publicKey, [try chains.leaf.keyPin()], position: position, invalid: true)
            #expect(policy.contradictions == [.positionNeverMatches(position)])
            #expect(try !evaluate(policy).isAccepted)
        }
    }

    @Test func aPinnedLeafOfAPrivateAuthorityNeedsNoRoot() throws {
        let verdict = try evaluate(
            policy(.certificate, [chains.stranger.certificatePin()], invalid: true), chains.stranger.presented())
        #expect(verdict.isAccepted)
        #expect(verdict.chain?.certificates == [try chains.stranger.parsed])
        // Pinned, but not trusted by the anchors.
        let strict = try evaluate(policy(.certificate, [chains.stranger.certificatePin()]), chains.stranger.presented())
        #expect(strict.refusal?.kind == "trust: unknownIssuer")
    }

    @Test func aFingerprintWithoutItsCertificateAnchorsThePeersOwnCopy() throws {
        for held in [chains.leaf, chains.intermediate] {
            let pin = Pin(.certificate(try held.parsed.sha256, nil), origin: "fingerprint")
            #expect(try evaluate(policy(.certificate, [pin])).matchedPin == pin)
            #expect(try evaluate(policy(.certificate, [pin], invalid: true), anchors: TrustAnchors([])).isAccepted)
            #expect(try !evaluate(policy(.certificate, [pin]), chains.stranger.presented()).isAccepted)
        }
    }

    @Test func theClockIsTheOneGiven() throws {
        let policy = policy(.certificate, [try chains.leaf.certificatePin()], invalid: true)
        let month = 31 * CertificateTemplate.day
        #expect(try evaluate(policy, at: Chains.now - month).refusal?.kind == "pinnedAnchors: notYetValid")
        #expect(try evaluate(policy, at: Chains.now + month).refusal?.kind == "pinnedAnchors: expired")
        #expect(try evaluate(policy).isAccepted)
    }

    /// A chain to a pinned leaf omits the issuers, although the anchors need them to vouch for it.
    @Test func aVerdictEndsWithTheFirstCertificateThatItNeeds() throws {
        let end = Chains.now + CertificateTemplate.day
        let issuer = try chains.root.issue(.intermediate("Ending").with { $0.notAfter = end })
        let leaf = try issuer.issue(.leaf("api.test"))
        for policy in [
            policy(.none, []), policy(.publicKey, [try leaf.keyPin()]),
            policy(.certificate, [try leaf.certificatePin()]),
        ] {
            #expect(try evaluate(policy, leaf.presented()).validUntil == end + 1, "\(policy.mode)")
            #expect(try evaluate(policy, leaf.presented(), at: end).isAccepted)
            #expect(try !evaluate(policy, leaf.presented(), at: end + 1).isAccepted)
        }
        let alone = policy(.certificate, [try leaf.certificatePin()], invalid: true)
        #expect(try evaluate(alone, leaf.presented()).validUntil == Chains.now + 30 * CertificateTemplate.day + 1)
    }

    @Test func reportLetsAMismatchThroughAndNothingElse() throws {
        let wrong = try Pin(text: wrongPin, for: .publicKey)
        let reported = try evaluate(policy(.publicKey, [wrong], enforcement: .report))
        #expect(reported.isAccepted)
        #expect(reported.matchedPin == nil)
        #expect(reported.report?.kind == "pinMismatch")
        let certificate = try evaluate(
            policy(.certificate, [chains.stranger.certificatePin()], enforcement: .report))
        #expect(certificate.report?.kind == "pinnedAnchors: unknownIssuer")
        #expect(certificate.chain?.certificates.count == 3)

        let untrusted = try evaluate(policy(.publicKey, [wrong], enforcement: .report), chains.stranger.presented())
        #expect(untrusted.refusal?.kind == "trust: unknownIssuer")
        let late = try evaluate(policy(.publicKey, [wrong], enforcement: .report), at: Chains.now + 90 * 86_400)
        #expect(late.refusal?.kind == "trust: expired")
        let lax = policy(.publicKey, [wrong], enforcement: .report, invalid: true)
        #expect(lax.contradictions == [.reportWithoutTrust])
        #expect(try evaluate(lax).refusal?.kind == "pinMismatch")
        let pinnedStranger = policy(
            .certificate, [try chains.stranger.certificatePin()], enforcement: .report, invalid: true)
        #expect(try evaluate(pinnedStranger).refusal?.kind.hasPrefix("pinnedAnchors") == true)
        #expect(
            try evaluate(policy(.publicKey, [], enforcement: .report)).refusal?.kind.hasPrefix("contradiction") == true)
        let matching = try evaluate(policy(.publicKey, [chains.leaf.keyPin()], enforcement: .report))
        #expect(matching.report == nil && matching.matchedDepth == 0)
    }
}
