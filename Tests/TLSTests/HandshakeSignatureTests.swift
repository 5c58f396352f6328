import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// The openssl command makes the signatures.
@Suite struct HandshakeSignatureTests {
    struct Method: Sendable, CustomTestStringConvertible {
        let scheme: UInt16
        let key: TestKey.Kind
        let options: [String]

        init(_ scheme: UInt16, _ key: TestKey.Kind, _ hash: String?, pss: Bool = false) {
            self.scheme = scheme
            self.key = key
            options =
                (hash.map { ["-\($0)"] } ?? [])
                + (pss ? ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:-1"] : [])
        }

        var testDescription: String { "0x" + String(scheme, radix: 16) }
    }

    static let methods = [
        Method(0x0401, .rsa(2048), "sha256"), Method(0x0501, .rsa(2048), "sha384"),
        Method(0x0601, .rsa(2048), "sha512"),
        Method(0x0804, .rsa(2048), "sha256", pss: true), Method(0x0805, .rsa(2048), "sha384", pss: true),
        Method(0x0806, .rsa(2048), "sha512", pss: true),
        Method(0x0403, .p256, "sha256"), Method(0x0503, .p384, "sha384"), Method(0x0603, .p521, "sha512"),
        // In TLS 1.2 the curve is free.
        Method(0x0403, .p384, "sha256"), Method(0x0603, .p256, "sha512"),
        Method(0x0807, .ed25519, nil),
    ]

    private static let message = Array("the randoms and the parameters".utf8)

    private static func sign(_ message: [UInt8], with key: TestKey, _ method: Method) throws -> [UInt8] {
        let directory = try TemporaryDirectory()
        let path = try directory.file("key.pem", key.privateKeyPEM)
        guard method.key == .ed25519 else {
            return try OpenSSLCommand.run(["dgst", "-sign", path] + method.options, input: message)
        }
        // Signed in one piece; the command has to know the size.
        let input = try directory.file("message", message)
        return try OpenSSLCommand.run(["pkeyutl", "-sign", "-rawin", "-inkey", path, "-in", input], input: [])
    }

    @Test(arguments: methods) func rightSignaturesVerify(_ method: Method) throws {
        let key = try TestKey.shared(method.key)
        let signature = try Self.sign(Self.message, with: key, method)
        let held = try PublicKey(der: key.publicKeyDER)
        #expect(throws: Never.self) { try held.verify(signature, of: Self.message, scheme: method.scheme) }
    }

    @Test(arguments: methods) func otherBytesOtherKeysAndBrokenSignaturesDoNot(_ method: Method) throws {
        let key = try TestKey.shared(method.key)
        let signature = try Self.sign(Self.message, with: key, method)
        let another = try TestKey.shared(method.key, number: 1)
        let (held, other) = (try PublicKey(der: key.publicKeyDER), try PublicKey(der: another.publicKeyDER))
        let wrong = HandshakeSignatureError.signature
        #expect(throws: wrong) { try other.verify(signature, of: Self.message, scheme: method.scheme) }
        #expect(throws: wrong) { try held.verify(signature, of: Self.message + [0], scheme: method.scheme) }
        #expect(throws: wrong) { try held.verify(signature, of: [], scheme: method.scheme) }
        for broken in [[], Array(signature.dropLast()), signature.dropLast() + [signature[signature.count - 1] ^ 1]] {
            #expect(throws: wrong) { try held.verify(broken, of: Self.message, scheme: method.scheme) }
        }
    }

    /// The padding and the hash are part of the negotiated scheme.
    @Test func anotherSchemeOfTheSameKeyDoesNot() throws {
        let key = try TestKey.shared(.rsa(2048))
        let held = try PublicKey(der: key.publicKeyDER)
        for method in Self.methods where method.key == .rsa(2048) {
            let signature = try Self.sign(Self.message, with: key, method)
            for other in Self.methods where other.key == .rsa(2048) && other.scheme != method.scheme {
                #expect(throws: HandshakeSignatureError.signature) {
                    try held.verify(signature, of: Self.message, scheme: other.scheme)
                }
            }
        }
        // A salt that is not as long as the digest.
        let long = try Self.sign(Self.message, with: key, Method(0x0804, .rsa(2048), "sha256", pss: true).salted(64))
        #expect(throws: HandshakeSignatureError.signature) {
            try held.verify(long, of: Self.message, scheme: 0x0804)
        }
    }

    @Test(arguments: methods) func aSchemeOfAnotherKindOfKeyIsTold(_ method: Method) throws {
        let key: TestKey.Kind = method.key == .ed25519 ? .p256 : .ed25519
        let held = try PublicKey(der: TestKey(key).publicKeyDER)
        #expect(throws: HandshakeSignatureError.key(held.keyDescription)) {
            try held.verify([1], of: Self.message, scheme: method.scheme)
        }
    }

    /// A key that isn't restricted to PSS.
    @Test func aKeyForPSSAloneIsAnotherKind() throws {
        let held = try PublicKey(der: TestKey.shared(.rsa(2048)).publicKeyDER)
        #expect(throws: HandshakeSignatureError.key("RSA 2048")) { try held.verify([1], of: [], scheme: 0x0809) }
    }

    /// MD5, SHA-1 and SHA-224, DSA, none, schemes of TLS 1.3 alone, GREASE.
    @Test(arguments: [0x0101, 0x0201, 0x0203, 0x0301, 0x0303, 0x0402, 0x0400, 0x081A, 0x0A0A, 0, 0xFFFF])
    func weakAndUnknownSchemesAreTold(_ scheme: UInt16) throws {
        let held = try PublicKey(der: TestKey.shared(.rsa(2048)).publicKeyDER)
        #expect(throws: HandshakeSignatureError.scheme(scheme)) { try held.verify([1], of: [], scheme: scheme) }
    }
}

extension HandshakeSignatureTests.Method {
    fileprivate func salted(_ length: Int) -> Self {
        var options = options
        options[options.count - 1] = "rsa_pss_saltlen:\(length)"
        return Self(scheme: scheme, key: key, options: options)
    }

    private init(scheme: UInt16, key: TestKey.Kind, options: [String]) {
        self.scheme = scheme
        self.key = key
        self.options = options
    }
}
