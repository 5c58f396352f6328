import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

@Suite struct PinTextTests {
    /// 32 bytes with a base64 form that begins with a slash: curl's spelling and ours must be distinguished.
    static let slashes = "//////////////////////////////////////////8="

    @Test(arguments: ["sha256/", "sha256//"])
    func bothSpellings(_ prefix: String) throws {
        let digest = SHA256Digest.of(Array("key".utf8))
        #expect(try Pin(text: prefix + digest.base64, for: .publicKey).kind == .spki(digest))
        let all = try #require(SHA256Digest(base64: Self.slashes))
        #expect(try Pin(text: prefix + Self.slashes, for: .publicKey).kind == .spki(all))
        #expect(try Pin(text: prefix + Self.slashes, for: .publicKey).description == "sha256/" + Self.slashes)
    }

    static let digest = SHA256Digest.of(Array("key".utf8))

    @Test(arguments: [
        ("", PinError.Reason.empty),
        ("hello", .noAlgorithm),
        ("certs/backup.pem", .fileName), ("backup.crt", .fileName), ("./x", .fileName),
        ("sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAA=", .unknownAlgorithm("sha1")),
        ("SHA512/AAAA", .unknownAlgorithm("sha512")), ("md5/AAAA", .unknownAlgorithm("md5")),
        ("SHA256/" + digest.base64, .spelling(digest)), ("sha-256/" + digest.base64, .spelling(digest)),
        ("SHA256/AAAA", .spelling(nil)),
        (slashes, .noPrefix(SHA256Digest(base64: slashes)!)),
        ("sha256/", .wrongLength(0)), ("sha256//", .wrongLength(0)), ("sha256/AAAA", .wrongLength(3)),
        ("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAA=", .wrongLength(20)),
        ("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", .wrongLength(33)),
        (
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            .notPadded(SHA256Digest(bytes: [UInt8](repeating: 0, count: 32))!)
        ),
        ("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=", .strayBits),
        ("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_-=", .base64URL),
        ("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA A=", .notBase64),
        ("sha256/AAAAAAAAAAAAAAAAAAAAA=AAAAAAAAAAAAAAAAAAAAA=", .notBase64),
        ("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", .notBase64),
        ("sha256/ÄAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", .notBase64),
        ("sha256/" + digest.hex, .hexadecimal(digest)),
    ])
    func refusal(_ text: String, _ reason: PinError.Reason) {
        let error = #expect(throws: PinError.self) { try Pin(text: text, for: .publicKey) }
        #expect(error?.reason == reason)
        #expect(error?.description.isEmpty == false)
    }

    static let pasted: [(String, PinError.Reason)] = [
        ("sha256/\(digest.base64.dropLast(3))", .characters(41)),
        ("sha256/\(digest.base64.dropFirst(3))", .characters(41)),
        ("\(digest.base64.dropLast(3))", .characters(41)), ("\(slashes.dropFirst(3))", .characters(41)),
        (digest.hex, .hexadecimal(digest)), (digest.base64, .noPrefix(digest)),
        ("\(digest.base64.dropLast())", .noPrefix(digest)),
        ("pin-sha256=\"\(digest.base64)\"", .headerPins([digest])),
        ("pin-sha256=\"\(slashes)\"", .headerPins([SHA256Digest(base64: slashes)!])),
        ("pin-sha256=\(digest.base64)", .headerPins([digest])), ("Pin-SHA256=\"AAAA\"", .headerPins([])),
        ("pin-sha256=", .headerPins([])),
        (
            "Public-Key-Pins: pin-sha256=\"\(digest.base64)\"; pin-sha256=\"\(slashes)\"; max-age=5184000",
            .headerPins([digest, SHA256Digest(base64: slashes)!])
        ),
        ("SHA2-256(stdin)= \(digest.hex)", .digestOutput(digest)), ("(stdin)= \(digest.hex)", .digestOutput(digest)),
        ("SHA256(spki.der)= \(digest.hex)", .digestOutput(digest)), ("\(digest.hex)  -", .digestOutput(digest)),
        ("SHA1(stdin)= 0d6f4bfb4b7b4a3f16a3f9d0e6d0f47e2ac4a6a0", .digestOutput(nil)),
        ("SHA1 Fingerprint=0D:6F:4B", .unknownAlgorithm("sha1")),
        ("sha256:\(digest.base64)", .spelling(digest)), ("SHA256:\(digest.base64.dropLast())", .spelling(digest)),
        ("sha256=\(slashes)", .spelling(SHA256Digest(base64: slashes)!)),
        ("sha256:\(digest.hex)", .hexadecimal(digest)), ("SHA256: \(colons(digest))", .hexadecimal(digest)),
        ("sha256:AAAA", .noAlgorithm),
        (colons(digest), .fingerprintInKeyMode(digest)),
        ("sha256 Fingerprint=\(colons(digest))", .fingerprintInKeyMode(digest)),
        ("\(colons(digest).dropLast(3))", .notAFingerprint),
    ]

    @Test(arguments: pasted) func whatOtherProgramsPrintIsRecognized(_ text: String, _ reason: PinError.Reason) {
        refusal(text, reason)
    }

    /// As `openssl x509 -fingerprint` writes it.
    static func colons(_ digest: SHA256Digest) -> String {
        digest.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined(separator: ":")
    }

    /// Whatever the source of the text, the error has the correct line.
    @Test(arguments: [
        digest.base64, "\(digest.base64.dropLast())", digest.hex, colons(digest), "sha256/\(digest.hex)",
        "SHA2-256(stdin)= \(digest.hex)",
        "sha256/\(digest.base64.dropLast())", "pin-sha256=\"\(digest.base64)\"", "\(digest.hex)  spki.der",
    ])
    func theErrorHasTheRightLine(_ text: String) throws {
        let error = #expect(throws: PinError.self) { try Pin(text: text, for: .publicKey) }
        let words = try #require(error).description
        #expect(["write ", "(or "].contains { words.contains("\($0)sha256/\(Self.digest.base64)") }, "\(words)")
    }

    /// Base64 may contain a slash, as paths do.
    @Test(arguments: ["pin-sha256=\"\(slashes)\"", "\(slashes.dropFirst(3))", "\(slashes.dropLast())"])
    func aDigestIsNotAFile(_ text: String) {
        let error = #expect(throws: PinError.self) { try Pin(text: text, for: .publicKey) }
        #expect(error?.description.contains("looks like a file") == false, "\(String(describing: error))")
    }

    @Test func aKeyPinsNoCertificate() {
        let error = #expect(throws: PinError.self) { try Pin(text: wrongPin, for: .certificate) }
        #expect(error?.reason == .keyInCertificateMode)
    }

    @Test func everyPrefixOfAPinIsRefused() throws {
        let whole = "sha256/" + Self.digest.base64
        for count in 0..<whole.count {
            #expect(throws: PinError.self) { try Pin(text: String(whole.prefix(count)), for: .publicKey) }
        }
    }
}

@Suite struct PinFileTests {
    private func pin(_ bytes: [UInt8], _ mode: PinningMode = .publicKey) throws -> Pin {
        try Pin(fileContents: bytes, for: mode, origin: "pin.pem")
    }

    @Test(arguments: [TestKey.Kind.p256, .p384, .rsa(2048), .ed25519])
    func allFormsOfOneKeyAreOnePin(_ kind: TestKey.Kind) throws {
        let held = try HeldCertificate.selfSigned(.leaf("api.test").with { $0.key = kind })
        let expected = try held.parsed.spkiSHA256
        #expect(expected == SHA256Digest.of(held.key.publicKeyDER))
        for bytes in [Array(held.pem.utf8), held.der, Array(held.key.publicKeyPEM.utf8), held.key.publicKeyDER] {
            let pin = try pin(bytes)
            #expect(pin.kind == .spki(expected))
            #expect(pin.origin == "file: pin.pem")
        }
        for bytes in [Array(held.pem.utf8), held.der] {
            #expect(try pin(bytes, .certificate).kind == .certificate(held.parsed.sha256, held.parsed))
        }
    }

    @Test func textAroundAndLineEndsOfWindowsAreNoHindrance() throws {
        let held = try HeldCertificate.root()
        let text = "subject=CN = Test\r\n" + held.pem.replacing("\n", with: "\r\n") + "\r\n"
        #expect(try pin(Array(text.utf8)).kind == .spki(held.parsed.spkiSHA256))
    }

    @Test func refusals() throws {
        let held = try HeldCertificate.root()
        let other = try HeldCertificate.root()
        func reason(_ bytes: [UInt8], _ mode: PinningMode = .publicKey) -> PinError.Reason? {
            let error = #expect(throws: PinError.self) { try pin(bytes, mode) }
            #expect(error?.description.contains("pin.pem") == true)
            return error?.reason
        }
        func reason(_ text: String, _ mode: PinningMode = .publicKey) -> PinError.Reason? {
            reason(Array(text.utf8), mode)
        }
        #expect(reason("") == .emptyFile)
        #expect(reason(" \n\n") == .emptyFile)
        #expect(reason(held.keyPEM) == .privateKey)
        #expect(reason(held.pem + held.keyPEM) == .privateKey)
        #expect(reason(held.key.privateKeyPEM(password: "secret")) == .privateKey)
        #expect(reason("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n") == .privateKey)
        #expect(reason(held.key.privateKeyDER) == .privateKey)
        #expect(reason(held.pem + other.pem) == .several(certificates: 2, keys: 0))
        #expect(reason(held.pem + held.key.publicKeyPEM) == .several(certificates: 1, keys: 1))
        #expect(reason("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n") == .request)
        #expect(reason("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n") == .otherPEM("X509 CRL"))
        #expect(reason(held.key.publicKeyPEM, .certificate) == .keyInCertificateMode)
        for broken in [
            Array("hello".utf8), [0x30], [0x30, 0x03, 0x02], held.der.dropLast(), held.der + [0],
            held.key.publicKeyDER + [0], Array(held.pem.utf8.dropLast(20)), Array(held.pem.utf8.dropFirst(40)),
        ] as [[UInt8]] {
            guard case .broken = reason(Array(broken)) else {
                Issue.record("\(broken.count) bytes: \(String(describing: reason(broken)))")
                continue
            }
        }
    }

    @Test func noPrefixOfACertificateIsAPin() throws {
        let held = try HeldCertificate.root()
        for count in 0..<held.der.count {
            #expect(throws: PinError.self) { try pin(Array(held.der.prefix(count))) }
        }
    }

    @Test func filesThatCannotBeRead() throws {
        func reason(_ path: String) -> PinError.Reason? {
            #expect(throws: PinError.self) { try Pin(file: path, for: .publicKey, origin: "certs/a.pem") }?.reason
        }
        #expect(reason("/nowhere/at/all.pem") == .unreadable(.system(2)))
        #expect(reason("/tmp") == .unreadable(.notAFile))
        #expect(reason("/dev/zero") == .unreadable(.notAFile))
    }
}
