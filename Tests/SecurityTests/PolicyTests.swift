import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

@Suite struct PolicyTests {
    @Test func theDigestChangesWithAllThatDecidesAndNothingElse() throws {
        let a = try Pin(text: wrongPin, for: .publicKey)
        let b = try Chains().leaf.keyPin()
        let held = try Chains().leaf
        let certificate = try held.certificatePin()
        let fingerprint = try held.parsed.sha256
        let record = try #require(try TLSARecord(text: "3 1 1 \(held.parsed.spkiSHA256.hex)"))
        let policies = [
            SecurityPolicy(),
            SecurityPolicy(allowsInvalidCertificates: true),
            SecurityPolicy(validatesDomainName: false),
            SecurityPolicy(mode: .publicKey, pins: PinSet([a])),
            SecurityPolicy(mode: .publicKey, pins: PinSet([b])),
            SecurityPolicy(mode: .publicKey, pins: PinSet([a, b])),
            SecurityPolicy(mode: .certificate, pins: PinSet([certificate])),
            SecurityPolicy(mode: .publicKey, pins: PinSet([Pin(.spki(fingerprint), origin: "")])),
            SecurityPolicy(mode: .publicKey, pins: PinSet([Pin(.record(record), origin: "")])),
            SecurityPolicy(mode: .publicKey, pins: PinSet([a]), position: .leaf),
            SecurityPolicy(mode: .publicKey, pins: PinSet([a]), enforcement: .report),
        ]
        #expect(Set(policies.map(\.digest)).count == policies.count)
        let again = Pin(a.kind, origin: "file: elsewhere.pem")
        #expect(
            SecurityPolicy(mode: .publicKey, pins: PinSet([b, again, b])).digest
                == SecurityPolicy(mode: .publicKey, pins: PinSet([a, b])).digest)
    }

    @Test func pinsAreKeptOnceInOrder() throws {
        let a = try Pin(text: wrongPin, for: .publicKey)
        let b = try Chains().leaf.keyPin()
        let set = PinSet([b, a, Pin(b.kind, origin: "again"), a])
        #expect(set.pins == [b, a])
        #expect(set.pins.map(\.origin) == [b.origin, wrongPin])
    }

    @Test func whatIsUnsafeIsLoud() throws {
        let pins = PinSet([try Chains().leaf.keyPin()])
        func switches(_ mode: PinningMode, invalid: Bool, name: Bool) -> [SecurityPolicy.UnsafeSwitch] {
            SecurityPolicy(
                mode: mode, pins: mode == .none ? PinSet() : pins, allowsInvalidCertificates: invalid,
                validatesDomainName: name
            ).unsafeSwitches
        }
        #expect(switches(.none, invalid: false, name: true).isEmpty)
        #expect(switches(.publicKey, invalid: false, name: true).isEmpty)
        #expect(switches(.publicKey, invalid: true, name: true) == [.allowsInvalidCertificates])
        #expect(switches(.certificate, invalid: true, name: false) == [.allowsInvalidCertificates, .ignoresName])
        #expect(switches(.none, invalid: false, name: false) == [.ignoresName])
        #expect(switches(.none, invalid: true, name: false) == [.acceptsAnyone])
    }

    @Test func contradictionsAreNamed() throws {
        let pins = PinSet([try Chains().leaf.keyPin()])
        #expect(SecurityPolicy().contradictions.isEmpty)
        #expect(SecurityPolicy(mode: .publicKey, pins: pins).contradictions.isEmpty)
        #expect(SecurityPolicy(mode: .publicKey).contradictions == [.noPins(.publicKey)])
        #expect(SecurityPolicy(mode: .certificate).contradictions == [.noPins(.certificate)])
        #expect(SecurityPolicy(pins: pins).contradictions == [.unusedPins])
        #expect(SecurityPolicy(allowsInvalidCertificates: true).contradictions == [.nothingToCheckTheNameBy])
        #expect(
            SecurityPolicy(allowsInvalidCertificates: true, validatesDomainName: false).contradictions.isEmpty)
    }
}

@Suite struct RefusalTextTests {
    let chains: Chains

    init() throws { chains = try Chains() }

    private func refusal(_ policy: SecurityPolicy, _ presented: PresentedChain) throws -> Refusal {
        try #require(
            policy.evaluate(presented, host: Chains.host, anchors: try chains.anchors, at: Chains.now).refusal)
    }

    @Test func aWrongPinShowsTheRightOnesReadyToPaste() throws {
        let file = Pin(try Pin(text: wrongPin, for: .publicKey).kind, origin: "file: certs/old.pem")
        let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([file]))
        let refusal = try refusal(policy, chains.presented)
        #expect(refusal.title == "Certificate pinning failure for api.test")
        #expect(refusal.isPinFailure)
        let pins = try [chains.leaf, chains.intermediate, chains.root].map { try $0.parsed.spkiSHA256.base64 }
        #expect(
            refusal.details.hasPrefix(
                """
                Certificate pinning failure for api.test
                  The verified chain, as pins ready to paste:
                    - sha256/\(pins[0])   # CN=api.test
                    - sha256/\(pins[1])   # CN=Test Intermediate
                    - sha256/\(pins[2])   # CN=Test Root
                  Configured pins:
                    - \(wrongPin)   # file: certs/old.pem
                  What to do:

                """))
        // The suggested pins parse, and are accepted.
        let pasted = try pins.map { try Pin(text: "sha256/\($0)", for: .publicKey) }
        for pin in pasted {
            let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([pin]))
            #expect(
                policy.evaluate(
                    try chains.presented, host: Chains.host, anchors: try chains.anchors, at: Chains.now
                ).isAccepted)
        }
    }

    @Test func whatWasNotVerifiedIsMarkedSo() throws {
        let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([try chains.leaf.keyPin()]))
        let refusal = try refusal(policy, chains.stranger.presented())
        #expect(refusal.title == "Certificate verification failure for api.test: unknown issuer")
        #expect(!refusal.isPinFailure)
        #expect(refusal.details.contains("NOT VERIFIED"))
        #expect(refusal.details.contains(try chains.stranger.parsed.spkiSHA256.base64))
        #expect(refusal.details.contains("intermediate certificate"))
        #expect(!refusal.details.contains("ready to paste"))
    }

    /// Every reason why trust can fail comes with advice.
    @Test(arguments: [
        (
            CertificateTemplate.leaf("api.test").with { $0.notAfter = Chains.now - 1 },
            VerificationFailure.Reason.expired
        ),
        (.leaf("api.test").with { $0.notBefore = Chains.now + 1 }, .notYetValid),
        (.leaf("other.test"), .nameMismatch),
        (.leaf("api.test").with { $0.dnsNames = [] }, .nameMismatch),
        (.leaf("api.test").with { $0.key = .rsa(1024) }, .weakKey),
        (.leaf("api.test").with { $0.digest = .sha1 }, .weakSignature),
        (.leaf("api.test").with { $0.breaksSignature = true }, .badSignature),
        (.leaf("api.test").with { $0.extendedKeyUsage = [CertificateTemplate.clientAuth] }, .wrongPurpose),
    ])
    func trustFailures(_ template: CertificateTemplate, _ reason: VerificationFailure.Reason) throws {
        let leaf = try chains.intermediate.issue(template)
        let refusal = try refusal(SecurityPolicy(), leaf.presented())
        #expect(refusal.kind == "trust: \(reason)")
        #expect(refusal.details.contains(reason.advice))
        #expect(refusal.x509Code != 0)
    }

    @Test func certificateModeShowsFingerprints() throws {
        let policy = SecurityPolicy(mode: .certificate, pins: PinSet([try chains.stranger.certificatePin()]))
        let refusal = try refusal(policy, chains.presented)
        #expect(refusal.details.contains(try chains.leaf.parsed.sha256.hex))
        #expect(refusal.details.contains(try chains.stranger.parsed.sha256.hex))
        #expect(refusal.details.contains("doesn't lead to a pinned certificate"))
    }

    @Test func aLongChainIsCutShort() throws {
        let extra = try (0..<30).map { try HeldCertificate.root("Extra \($0)").parsed }
        let presented = PresentedChain(leaf: try chains.stranger.parsed, rest: extra)
        let details = try refusal(SecurityPolicy(), presented).details
        #expect(details.contains("# and 21 more"))
        #expect(details.utf8.count < 4096)
    }
}
