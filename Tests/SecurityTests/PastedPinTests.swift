import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

/// Pins suggested by a refusal are accepted once pasted, whatever the mode, the position and the server's certificates.
@Suite struct PastedPinTests {
    let chains: Chains

    init() throws { chains = try Chains() }

    private func evaluate(_ policy: SecurityPolicy, _ presented: PresentedChain) throws -> Verdict {
        policy.evaluate(presented, host: Chains.host, anchors: try chains.anchors, at: Chains.now)
    }

    /// A pin of the mode that no certificate has.
    private func wrong(_ mode: PinningMode) throws -> Pin {
        let digest = SHA256Digest.of([1])
        return Pin(mode == .certificate ? .certificate(digest, nil) : .spki(digest), origin: "wrong")
    }

    @Test(arguments: [PinningMode.publicKey, .certificate], PinPosition.allCases)
    func everyLineThatIsOfferedMatches(_ mode: PinningMode, _ position: PinPosition) throws {
        for sendsRoot in [false, true] {
            let presented = try sendsRoot ? chains.leaf.presented(appending: chains.root) : chains.presented
            func policy(_ pin: Pin) -> SecurityPolicy {
                SecurityPolicy(mode: mode, pins: PinSet([pin]), position: position)
            }
            let refusal = try #require(try evaluate(policy(wrong(mode)), presented).refusal)
            #expect(refusal.presentedPins.count == (position == .any ? 3 : 1))
            for line in refusal.presentedPins {
                #expect(refusal.details.contains("\n    - \(line)   # "))
                let verdict = try evaluate(policy(Pin(text: line, for: mode)), presented)
                #expect(verdict.isAccepted, "\(line): \(verdict.refusal?.details ?? "")")
                #expect(verdict.matchedPin?.description == line)
            }
            // No other line looks like one to paste.
            #expect(
                refusal.details.split(separator: "\n").count { $0.hasPrefix("    - ") } == refusal.presentedPins.count
                    + 1)
        }
    }

    /// Where no chain is verified, the server only proves that it holds the leaf's key.
    @Test func withInvalidCertificatesAllowedOnlyTheLeafIsOffered() throws {
        let policy = SecurityPolicy(
            mode: .publicKey, pins: PinSet([try wrong(.publicKey)]), allowsInvalidCertificates: true)
        let details = try #require(try evaluate(policy, chains.presented).refusal).details
        #expect(details.contains("    - sha256/\(try chains.leaf.parsed.spkiSHA256.base64)   # CN=api.test"))
        #expect(!details.contains(try chains.intermediate.parsed.spkiSHA256.base64))
        #expect(details.contains("    # CN=Test Intermediate: only the server's own key counts"))
    }

    /// Servers don't send their root; verification finds it among the anchors, so its pin matches.
    @Test func aRootThatIsNotSentMatchesItsFingerprint() throws {
        let root = try chains.root.parsed
        let texts =
            ["cert-sha256/\(root.sha256.hex)", "2 0 1 \(root.sha256.hex)", "0 0 1 \(root.sha256.hex)"]
            + ["2 0 2 \(SHA512.of(root.der).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())"]
        for text in texts {
            let pin = try Pin(text: text, for: .certificate)
            for position in [PinPosition.any, .root] {
                for isInvalidAllowed in [false, true] {
                    let policy = SecurityPolicy(
                        mode: .certificate, pins: PinSet([pin]), allowsInvalidCertificates: isInvalidAllowed,
                        position: position)
                    let verdict = try evaluate(policy, chains.presented)
                    #expect(verdict.matchedPin == pin, "\(text.prefix(12)): \(verdict.refusal?.details ?? "")")
                    #expect(verdict.matchedDepth == 2)
                    // It vouches only for its own chain.
                    #expect(try !evaluate(policy, chains.stranger.presented()).isAccepted)
                }
            }
        }
    }

    /// A pinned certificate may be found among the anchors, but that alone doesn't vouch for the server.
    @Test func aFingerprintOfAnotherAnchorVouchesForNobody() throws {
        let other = try HeldCertificate.root("Other Root")
        let anchors = TrustAnchors([try chains.root.parsed, try other.parsed])
        let pin = Pin(.certificate(try other.parsed.sha256, nil), origin: "other")
        for isInvalidAllowed in [false, true] {
            let policy = SecurityPolicy(
                mode: .certificate, pins: PinSet([pin]), allowsInvalidCertificates: isInvalidAllowed)
            let verdict = policy.evaluate(
                try chains.presented, host: Chains.host, anchors: anchors, at: Chains.now)
            #expect(verdict.refusal?.isPinFailure == true)
        }
    }

    /// An intermediate that the machine has and the server doesn't send.
    @Test func anIssuerAmongTheAnchorsIsFoundForAPinnedRootToo() throws {
        let anchors = TrustAnchors([try chains.root.parsed, try chains.intermediate.parsed])
        let presented = PresentedChain(leaf: try chains.leaf.parsed)
        for held in [chains.intermediate, chains.root] {
            let pins = [try held.certificatePin(), Pin(.certificate(try held.parsed.sha256, nil), origin: "digest")]
            for pin in pins {
                let policy = SecurityPolicy(mode: .certificate, pins: PinSet([pin]))
                let verdict = policy.evaluate(presented, host: Chains.host, anchors: anchors, at: Chains.now)
                #expect(verdict.matchedPin == pin, "\(verdict.refusal?.details ?? "")")
            }
        }
    }

    @Test func aPositionIsBlamedOnlyWhereItRulesOut() throws {
        let wrongRoot = Pin(.certificate(try chains.stranger.issuers[0].parsed.sha256, nil), origin: "stranger")
        let refusal = try #require(
            try evaluate(SecurityPolicy(mode: .certificate, pins: PinSet([wrongRoot])), chains.presented).refusal)
        #expect(!refusal.details.contains("does not allow it there"))
        let leaf = SecurityPolicy(mode: .certificate, pins: PinSet([try chains.root.certificatePin()]), position: .leaf)
        #expect(try evaluate(leaf, chains.presented).refusal?.details.contains("does not allow it there") == true)
    }
}
