import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

@Suite struct Ed25519Tests {
    @Test func theBytesOfAKeyMakeTheSameKey() throws {
        let key = try PrivateKey(pem: Array(TestKey(.ed25519).privateKeyPEM.utf8))
        let bytes = try #require(key.publicKey.ed25519)
        #expect(bytes.count == 32)
        #expect(try PublicKey(ed25519: bytes) == key.publicKey)
        let message = Array("message".utf8)
        let signature = try key.sign(message)
        #expect(PublicKey.verifies(signature, of: message, ed25519: bytes))
        for bit in 0..<512 {
            var changed = signature
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(!PublicKey.verifies(changed, of: message, ed25519: bytes))
        }
        #expect(!PublicKey.verifies(signature, of: message + [0], ed25519: bytes))
    }

    @Test func onlyWholeKeysAndSignaturesAreTaken() throws {
        let key = try PrivateKey(pem: Array(TestKey(.ed25519).privateKeyPEM.utf8))
        let bytes = try #require(key.publicKey.ed25519)
        let signature = try key.sign([])
        for count in [0, 31, 33] {
            #expect(throws: KeyError.self) { try PublicKey(ed25519: [UInt8](repeating: 1, count: count)) }
        }
        #expect(!PublicKey.verifies(Array(signature.dropLast()), of: [], ed25519: bytes))
        #expect(!PublicKey.verifies(signature + [0], of: [], ed25519: bytes))
        #expect(!PublicKey.verifies([], of: [], ed25519: bytes))
        #expect(try PrivateKey.generateP256().publicKey.ed25519 == nil)
    }
}
