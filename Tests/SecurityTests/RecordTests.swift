import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

@Suite struct FingerprintTests {
    @Test func allSpellingsAreOnePin() throws {
        let held = try HeldCertificate.root()
        let digest = try held.parsed.sha256
        let colons = digest.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
            .joined(separator: ":")
        let texts = [
            "cert-sha256/\(digest.hex)", "cert-sha256/\(digest.base64)", "cert-sha256/\(colons)", colons,
            "sha256 Fingerprint=\(colons)", "SHA256 Fingerprint=\(colons)",
        ]
        for text in texts {
            let pin = try Pin(text: text, for: .certificate)
            #expect(pin.kind == .certificate(digest, nil))
            #expect(pin.origin == text)
            #expect(try Pin(text: pin.description, for: .certificate) == pin)
            let error = #expect(throws: PinError.self) { try Pin(text: text, for: .publicKey) }
            #expect(error?.reason == .fingerprintInKeyMode(digest))
        }
    }

    @Test(arguments: [
        "AB:CD", "cert-sha256/", "cert-sha256/abcd", "sha256 Fingerprint=", "AB:CD:XY", "cert-sha256/AAAA",
    ])
    func refusal(_ text: String) {
        let error = #expect(throws: PinError.self) { try Pin(text: text, for: .certificate) }
        #expect(error?.reason == .notAFingerprint)
    }
}

@Suite struct TLSARecordTests {
    let chains: Chains

    init() throws { chains = try Chains() }

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Every usage, selector and matching type, at every position of the chain.
    @Test(arguments: 0..<4, 0..<2)
    func everyKindOfRecord(_ usage: Int, _ selector: Int) throws {
        let mode = selector == 0 ? PinningMode.certificate : .publicKey
        let other = selector == 0 ? PinningMode.publicKey : .certificate
        for (depth, held) in [chains.leaf, chains.intermediate, chains.root].enumerated() {
            let bytes = selector == 0 ? held.der : held.key.publicKeyDER
            for (matching, data) in [bytes, SHA256Digest.of(bytes).bytes, SHA512.of(bytes)].enumerated() {
                let text = "\(usage) \(selector) \(matching) \(hex(data))"
                let pin = try Pin(text: text, for: mode)
                #expect(pin.description == text)
                #expect(throws: PinError.self) { try Pin(text: text, for: other) }
                // The root's fingerprint alone anchors nothing: servers don't send their root.
                let isRightPlace = usage % 2 == 1 ? depth == 0 : depth > 0
                let policy = SecurityPolicy(mode: mode, pins: PinSet([pin]))
                let verdict = policy.evaluate(
                    try chains.presented, host: Chains.host, anchors: try chains.anchors, at: Chains.now)
                #expect(verdict.isAccepted == isRightPlace, "\(text.prefix(6)) at \(depth)")
                #expect(verdict.matchedDepth == (verdict.isAccepted ? depth : nil))
            }
        }
    }

    @Test func aRecordLoosensNothing() throws {
        let pin = try Pin(text: "3 1 1 \(chains.stranger.parsed.spkiSHA256.hex)", for: .publicKey)
        let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([pin]))
        let verdict = policy.evaluate(
            try chains.stranger.presented(), host: Chains.host, anchors: try chains.anchors, at: Chains.now)
        #expect(verdict.refusal?.kind == "trust: unknownIssuer")
    }

    @Test func linesOfAZoneFile() throws {
        let digest = try chains.leaf.parsed.spkiSHA256.hex.uppercased()
        let expected = try Pin(text: "3 1 1 \(digest)", for: .publicKey)
        for text in [
            "TLSA 3 1 1 \(digest)", "_443._tcp.api.test. IN TLSA 3 1 1 \(digest)",
            "_443._tcp.api.test. 3600 IN tlsa 3 1 1 ( \(digest.prefix(32))\n\t\(digest.dropFirst(32)) )",
            "3 1 1 \(digest.prefix(10)) \(digest.dropFirst(10))",
        ] {
            #expect(try Pin(text: text, for: .publicKey) == expected, "\(text)")
        }
    }

    @Test(arguments: [
        ("4 1 1 00", TLSARecord.Problem.usage("4")), ("TLSA 3", .selector("")), ("TLSA", .usage("")),
        ("3 2 1 00", .selector("2")), ("3 1 3 00", .matching("3")), ("3 1 256 00", .matching("256")),
        ("3 1 1 xy", .notHexadecimal), ("3 1 1 000", .notHexadecimal), ("TLSA 3 1 1", .notHexadecimal),
        ("3 1 1 ü0", .notHexadecimal), ("3 1 1 00", .wrongLength(1, expected: 32)),
        ("3 1 2 " + String(repeating: "0", count: 64), .wrongLength(32, expected: 64)),
    ])
    func refusal(_ text: String, _ problem: TLSARecord.Problem) {
        let error = #expect(throws: PinError.self) { try Pin(text: text, for: .publicKey) }
        #expect(error?.reason == .record(problem))
        #expect(error?.description.contains(problem.description) == true)
    }

    @Test func wholeDataMustBeWhatTheSelectorSays() throws {
        let certificate = hex(chains.leaf.der)
        let key = hex(chains.leaf.key.publicKeyDER)
        for text in ["3 0 0 \(key)", "3 1 0 \(certificate)", "3 0 0 \(certificate.dropLast(2))", "3 1 0 00"] {
            let error = #expect(throws: PinError.self) { try Pin(text: text, for: .certificate) }
            guard case .record(.unreadable) = error?.reason else {
                Issue.record("\(text.prefix(6)): \(String(describing: error))")
                continue
            }
        }
    }
}
