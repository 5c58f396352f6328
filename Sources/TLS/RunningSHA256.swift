import CPinproxyOpenSSL

/// SHA-256 of bytes that come piece by piece.
package struct RunningSHA256: ~Copyable {
    private let context: OpaquePointer

    package init() {
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex2(context, Algorithm.sha256.pointer, nil) == 1 else {
            preconditionFailure("SHA-256 is not available in OpenSSL")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    package mutating func append(_ bytes: Span<UInt8>) {
        let done = bytes.withUnsafeBufferPointer { EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
        precondition(done == 1, "OpenSSL can't update the digest")
    }

    package consuming func digest() -> SHA256Digest {
        var output = [UInt8](repeating: 0, count: 32)
        guard EVP_DigestFinal_ex(context, &output, nil) == 1, let digest = SHA256Digest(bytes: output) else {
            preconditionFailure("OpenSSL can't finish the digest")
        }
        return digest
    }
}
