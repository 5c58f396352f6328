import PinproxyTLS
import Testing

@testable import PinproxyBundles

@Suite struct BundleKeyTests {
    /// The first test of RFC 8032 section 7.1.
    @Test func aKeyOfTheRFCIsReadAndNamed() throws {
        let seed = try bytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
        let key = try BundleBed.key(seed: seed)
        let point = try bytes("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
        #expect(key.publicKey.text == "ed25519:" + Base64.encode(point))
        #expect(key.publicKey.id == SHA256Digest.of(point).hex)
        #expect(try BundleKey(key.publicKey.text) == key.publicKey)
        let signature = try key.sign([])
        #expect(
            signature
                == (try bytes(
                    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
                        + "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b")))
        #expect(PublicKey.verifies(signature, of: [], ed25519: point))
        #expect(!PublicKey.verifies(signature, of: [0], ed25519: point))
    }

    @Test(arguments: [
        ("", "\"\" is not a key; write ed25519: and the base64 of its 32 bytes"),
        ("ed25519/AAAA", "\"ed25519/AAAA\" is not a key; write ed25519: and the base64 of its 32 bytes"),
        ("ed25519:AAA", "\"ed25519:AAA\" is not a key; write ed25519: and the base64 of its 32 bytes"),
        ("ed25519: AAAA", "\"ed25519: AAAA\" is not a key; write ed25519: and the base64 of its 32 bytes"),
        ("ed25519:\u{1B}[2J", "\"ed25519:\\u{1B}[2J\" is not a key; write ed25519: and the base64 of its 32 bytes"),
        ("ed25519:", "the key has 0 bytes; an Ed25519 key has 32"),
        ("ed25519:AAAA", "the key has 3 bytes; an Ed25519 key has 32"),
    ]) func wrongTextsAreRefused(text: String, reason: String) {
        #expect(reasons { () throws(BundleKeyError) in try BundleKey(text) } == reason)
    }

    @Test(arguments: [31, 32, 33]) func onlyKeysOf32BytesAreKeys(count: Int) {
        let text = "ed25519:" + Base64.encode([UInt8](repeating: 7, count: count))
        #expect(((try? BundleKey(text)) != nil) == (count == 32))
    }

    @Test func aKeyOfAnotherKindSignsNothing() throws {
        let pem = Array(try PrivateKey.generateP256().pem.utf8)
        #expect(
            reasons { () throws(BundleKeyError) in try SigningKey(pem: pem) }
                == "it is a key of EC P-256; bundles are signed with Ed25519 (openssl genpkey -algorithm ed25519)")
        #expect(reasons { () throws(BundleKeyError) in try SigningKey(pem: []) }?.hasPrefix("not a key") == true)
    }

    @Test func thresholdsAreOfDistinctKeys() throws {
        let key = try BundleBed.key(1).publicKey
        #expect(throws: RoleKeysProblem.threshold(0)) { try BundleBed.role([1], 0) }
        #expect(throws: RoleKeysProblem.tooFew(keys: 1, threshold: 2)) { try BundleBed.role([1], 2) }
        #expect(throws: RoleKeysProblem.tooFew(keys: 0, threshold: 1)) { try BundleBed.role([], 1) }
        #expect(throws: RoleKeysProblem.twice(key)) { try BundleBed.role([1, 2, 1], 2) }
        #expect(try BundleBed.role([1, 2], 2).threshold == 2)
        let many = Array(UInt8(1)...UInt8(64))
        #expect(try BundleBed.role(many, 64).keys.count == 64)
        #expect(throws: RoleKeysProblem.tooMany(65)) { try BundleBed.role(many + [65], 1) }
    }

    private func bytes(_ hex: String) throws -> [UInt8] {
        try stride(from: 0, to: hex.count, by: 2).map {
            let start = hex.index(hex.startIndex, offsetBy: $0)
            return try #require(UInt8(hex[start...].prefix(2), radix: 16))
        }
    }

    private func reasons<Value>(_ make: () throws(BundleKeyError) -> Value) -> String? {
        do throws(BundleKeyError) {
            _ = try make()
            return nil
        } catch {
            return "\(error)"
        }
    }
}
