import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

/// Two roots vouch for one issuer: whichever path verification tries first, a pin of the other root counts.
@Suite struct CrossSignedTests {
    let old: HeldCertificate
    let new: HeldCertificate
    /// The new root's name and key, signed by the old one.
    let cross: HeldCertificate
    let issuer: HeldCertificate
    let leaf: HeldCertificate

    init() throws {
        old = try .root("Old Root")
        let new = try HeldCertificate.root("New Root")
        self.new = new
        cross = try old.issue(.intermediate("New Root", pathLength: nil).with { $0.keyPair = new.key })
        issuer = try new.issue(.intermediate("Issuer"))
        leaf = try issuer.issue(.leaf("api.test"))
    }

    private var anchors: TrustAnchors { get throws { TrustAnchors([try old.parsed, try new.parsed]) } }

    private func presented(_ rest: HeldCertificate...) throws -> PresentedChain {
        PresentedChain(leaf: try leaf.parsed, rest: try rest.map { try $0.parsed })
    }

    private func evaluate(
        _ policy: SecurityPolicy, _ presented: PresentedChain, anchors: TrustAnchors? = nil
    ) throws -> Verdict {
        let anchors = try anchors ?? self.anchors
        let verdict = policy.evaluate(presented, host: Chains.host, anchors: anchors, at: Chains.now)
        let explanation = policy.explain(presented, host: Chains.host, anchors: anchors, at: Chains.now)
        #expect(explanation.verdict.isAccepted == verdict.isAccepted)
        #expect(explanation.checks.contains { $0.outcome == .failed } == !verdict.isAccepted)
        return verdict
    }

    @Test(arguments: [PinningMode.publicKey, .certificate], [PinPosition.any, .root])
    func eitherRootCanBePinned(_ mode: PinningMode, _ position: PinPosition) throws {
        for root in [old, new] {
            let pins = PinSet([mode == .publicKey ? try root.keyPin() : try root.certificatePin()])
            let policy = SecurityPolicy(mode: mode, pins: pins, position: position)
            for presented in [try presented(issuer, cross), try presented(cross, issuer)] {
                let verdict = try evaluate(policy, presented)
                #expect(verdict.isAccepted, "\(verdict.refusal?.details ?? "")")
                #expect(verdict.matchedDepth.flatMap { verdict.chain?.certificates[$0] } == (try root.parsed))
                #expect(verdict.chain?.anchor == (try root.parsed))
            }
        }
    }

    /// The certificate between the roots can be pinned as well, by its fingerprint where it is sent.
    @Test func theCrossCertificateCanBePinned() throws {
        let pin = Pin(.certificate(try cross.parsed.sha256, nil), origin: "cross")
        let policy = SecurityPolicy(mode: .certificate, pins: PinSet([pin]))
        #expect(try evaluate(policy, presented(issuer, cross)).isAccepted)
        #expect(try !evaluate(policy, presented(issuer)).isAccepted)
    }

    /// Rule 1: certificates that are only appended, or that reach no anchor, form no chain.
    @Test func aWayThatDoesNotVerifyLendsNoPin() throws {
        let pin = PinSet([try old.keyPin()])
        let policy = SecurityPolicy(mode: .publicKey, pins: pin)
        let onlyNew = TrustAnchors([try new.parsed])
        #expect(try evaluate(policy, presented(issuer, cross, old), anchors: onlyNew).refusal?.kind == "pinMismatch")
        // The cross certificate doesn't verify, so there is no path to the old root.
        let changes: [(inout CertificateTemplate) -> Void] = [
            { $0.notAfter = Chains.now - 1 }, { $0.breaksSignature = true }, { $0.basicConstraints = .none },
        ]
        for change in changes {
            let bad = try old.issue(
                .intermediate("New Root", pathLength: nil).with {
                    $0.keyPair = new.key
                    change(&$0)
                })
            #expect(try evaluate(policy, presented(issuer, bad)).refusal?.kind == "pinMismatch")
        }
        // Nor does a certificate signed by another key than the root's that it names.
        let forged = try HeldCertificate.root("Old Root").issue(
            .intermediate("New Root", pathLength: nil).with { $0.keyPair = new.key })
        #expect(try evaluate(policy, presented(issuer, forged)).refusal?.kind == "pinMismatch")
    }

    /// The refusal shows the first chain, and remains a mismatch.
    @Test func aPinOfNeitherIsAMismatch() throws {
        let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([try Pin(text: wrongPin, for: .publicKey)]))
        let refusal = try #require(try evaluate(policy, presented(issuer, cross)).refusal)
        #expect(refusal.kind == "pinMismatch")
        #expect(refusal.chain?.anchor == (try new.parsed))
        let report = SecurityPolicy(mode: .publicKey, pins: policy.pins, enforcement: .report)
        #expect(try evaluate(report, presented(issuer, cross)).report?.kind == "pinMismatch")
    }

    /// The name constraint is the pinned root's own: the other root's chain may be valid, but doesn't match the pin.
    @Test func aPinnedRootThatExcludesTheNameDoesNotVouchForIt() throws {
        typealias DER = PinproxyTestAuthority.DERWriter
        let excluding = DER.sequence(DER.value(0xA1, DER.sequence(DER.value(0x82, Array("api.test".utf8)))))
        let constrained = try HeldCertificate.selfSigned(
            .root("Old Root").with {
                $0.keyPair = old.key
                $0.extensions = [("2.5.29.30", true, excluding)]
            })
        let anchors = TrustAnchors([try constrained.parsed, try new.parsed])
        let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([try constrained.keyPin()]))
        #expect(try evaluate(policy, presented(issuer, cross), anchors: anchors).refusal?.kind == "pinMismatch")
        #expect(try evaluate(SecurityPolicy(), presented(issuer, cross), anchors: anchors).isAccepted)
    }
}
