import CPinproxyOpenSSL

// Raw Ed25519 keys (RFC 8032 section 5.1.5), as formats other than X.509 write them. `PrivateKey.sign` signs with them.

extension PublicKey {
    /// From the 32 bytes of an Ed25519 public key.
    package convenience init(ed25519 bytes: [UInt8]) throws(KeyError) {
        OpenSSLErrorQueue.clear()
        guard let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count) else {
            throw .malformed(OpenSSLErrorQueue.takeReason())
        }
        self.init(owning: key)
    }

    /// The 32 bytes of an Ed25519 key; nil for another kind.
    package var ed25519: [UInt8]? {
        guard EVP_PKEY_get_base_id(pointer) == EVP_PKEY_ED25519 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 32)
        var count = bytes.count
        guard EVP_PKEY_get_raw_public_key(pointer, &bytes, &count) == 1, count == bytes.count else { return nil }
        return bytes
    }

    /// Whether an Ed25519 key of these 32 bytes made the signature (64 bytes) of the message.
    package static func verifies(_ signature: [UInt8], of message: [UInt8], ed25519 key: [UInt8]) -> Bool {
        guard signature.count == 64, let key = try? PublicKey(ed25519: key) else { return false }
        do throws(HandshakeSignatureError) {
            // 0x0807 is Ed25519 (RFC 8446 section 4.2.3).
            try key.verify(signature, of: message, scheme: 0x0807)
            return true
        } catch {
            return false
        }
    }
}
