import CPinproxyOpenSSL

/// Message authentication by GMAC with AES-128 (NIST SP 800-38D section 3, RFC 4543), for one message after another.
// One thread uses it at a time: it can't be copied, and `tag` mutates.
package struct GMAC: ~Copyable, @unchecked Sendable {
    /// Bytes.
    package static let keyLength = 16
    /// Bytes.
    package static let nonceLength = 12
    /// Bytes.
    package static let tagLength = 16

    private let context: OpaquePointer

    /// - Parameter key: ``keyLength`` bytes.
    package init(key: [UInt8]) {
        precondition(key.count == Self.keyLength, "a key of GMAC has 16 bytes")
        guard let context = EVP_CIPHER_CTX_new(),
            EVP_EncryptInit_ex2(context, Algorithm.aes128GCM.pointer, key, nil, nil) == 1
        else {
            preconditionFailure("AES-128-GCM is not available in OpenSSL")
        }
        self.context = context
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    /// - Parameter nonce: ``nonceLength`` bytes, never used before with this key: of two tags with the same nonce
    ///   an attacker learns how to forge others.
    /// - Returns: ``tagLength`` bytes.
    package mutating func tag(of message: [UInt8], nonce: [UInt8]) -> [UInt8] {
        precondition(nonce.count == Self.nonceLength, "a nonce of GMAC has 12 bytes")
        var tag = [UInt8](repeating: 0, count: Self.tagLength)
        var length: CInt = 0
        // Data without an output is authenticated and not encrypted. An empty array's address may be nil, which would
        // end the message.
        let isDone =
            EVP_EncryptInit_ex2(context, nil, nil, nonce, nil) == 1
            && (message.isEmpty || EVP_EncryptUpdate(context, nil, &length, message, CInt(message.count)) == 1)
            && EVP_EncryptFinal_ex(context, &tag, &length) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, CInt(tag.count), &tag) == 1
        precondition(isDone, "OpenSSL can't compute a tag with a key that it took")
        return tag
    }
}
