import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

@Suite struct DigestTests {
    /// FIPS 180-2's first example.
    static let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    /// NIST's example of an empty message.
    static let ofNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    @Test func knownDigest() {
        let digest = SHA256Digest.of(Array("abc".utf8))
        #expect(digest.hex == Self.abc)
        #expect(digest.base64 == "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=")
        #expect(digest == SHA256Digest(hex: Self.abc.uppercased()))
        #expect(digest == SHA256Digest(base64: digest.base64))
        #expect(digest == SHA256Digest(bytes: digest.bytes))
        #expect(SHA256Digest.of([UInt8]()).hex == Self.ofNothing)
    }

    @Test func hexWithColons() {
        let bytes = (0..<32).map { UInt8($0) }
        let text = bytes.map { $0 < 16 ? "0\(String($0, radix: 16))" : String($0, radix: 16) }.joined(separator: ":")
        #expect(SHA256Digest(hex: text)?.bytes == bytes)
    }

    @Test(arguments: [
        "", "ba", String(abc.dropLast()), abc + "00", abc.dropLast(2) + "0g", ":" + abc, abc + ":",
        "b:a" + abc.dropFirst(2), "ba::" + abc.dropFirst(2),
    ])
    func brokenHex(_ text: String) {
        #expect(SHA256Digest(hex: text) == nil)
    }

    @Test(arguments: [
        "", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=A",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= ", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "AAAAAAAAAAAAAAAAAAAAA=AAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=AAAA",
    ])
    func brokenBase64(_ text: String) {
        #expect(SHA256Digest(base64: text) == nil)
    }

    @Test func base64OfEveryLength() {
        for count in 0..<70 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
            let text = Base64.encode(bytes)
            #expect(Base64.decode(text.utf8) == bytes)
            for prefix in 0..<text.utf8.count where prefix % 4 != 0 {
                #expect(Base64.decode(text.utf8.prefix(prefix)) == nil)
            }
        }
    }

    @Test(arguments: [TestKey.Kind.p256, .p384, .rsa(2048), .ed25519])
    func digestsAsTheCommandComputesThem(_ kind: TestKey.Kind) throws {
        let held = try HeldCertificate.selfSigned(.leaf("digest.test").with { $0.key = kind })
        let certificate = try Certificate(der: held.der)
        let fingerprint = try OpenSSLCommand.text(
            ["x509", "-noout", "-fingerprint", "-sha256"], input: Array(held.pem.utf8))
        let written = try #require(fingerprint.split(separator: "=").last)
        #expect(certificate.sha256 == SHA256Digest(hex: written))

        let keyPEM = try OpenSSLCommand.run(["x509", "-noout", "-pubkey"], input: Array(held.pem.utf8))
        let spki = try OpenSSLCommand.run(["pkey", "-pubin", "-outform", "der"], input: keyPEM)
        let pin = try OpenSSLCommand.text(
            ["dgst", "-sha256", "-r"], input: spki
        )
        #expect(certificate.publicKeyDER == spki)
        #expect(certificate.spkiSHA256 == SHA256Digest(hex: pin.prefix(64)))
        #expect(try PublicKey(pem: keyPEM).spkiSHA256 == certificate.spkiSHA256)
        #expect(try PublicKey(der: spki).spkiSHA256 == certificate.spkiSHA256)
    }
}
