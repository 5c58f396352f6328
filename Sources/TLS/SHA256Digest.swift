import CPinproxyOpenSSL

/// A SHA-256 digest, stored inline.
package struct SHA256Digest: Sendable, Hashable {
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// Nil unless there are 32 bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.init(raw: bytes.span.bytes)
    }

    /// 64 hexadecimal digits of either case, with or without the colons of `openssl x509 -fingerprint`.
    package init?(hex: some StringProtocol) {
        guard let bytes = Hexadecimal.decode(hex.utf8) else { return nil }
        self.init(bytes: bytes)
    }

    /// The digest written in base64 with its padding (RFC 4648 section 4), as pins are.
    package init?(base64: some StringProtocol) {
        guard let bytes = Base64.decode(Array(base64.utf8)) else { return nil }
        self.init(bytes: bytes)
    }

    private init(raw: RawSpan) {
        words = (
            raw.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt64.self),
            raw.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt64.self),
            raw.unsafeLoadUnaligned(fromByteOffset: 16, as: UInt64.self),
            raw.unsafeLoadUnaligned(fromByteOffset: 24, as: UInt64.self)
        )
    }

    package static func of(_ bytes: [UInt8]) -> SHA256Digest {
        bytes.withUnsafeBytes { of($0) }
    }

    static func of(_ bytes: UnsafeRawBufferPointer) -> SHA256Digest {
        withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { output in
            let done = EVP_Digest(
                bytes.baseAddress, bytes.count, output.baseAddress, nil, Algorithm.sha256.pointer, nil)
            precondition(done == 1, "SHA-256 is not available in OpenSSL")
            return SHA256Digest(raw: UnsafeRawBufferPointer(output).bytes)
        }
    }

    package var bytes: [UInt8] {
        withUnsafeBytes(of: words) { [UInt8]($0) }
    }

    /// 44 characters of base64 with padding.
    package var base64: String { Base64.encode(bytes) }

    /// 64 lower-case hexadecimal digits.
    package var hex: String { Hexadecimal.encode(bytes) }

    package static func == (left: SHA256Digest, right: SHA256Digest) -> Bool {
        left.words == right.words
    }

    package func hash(into hasher: inout Hasher) {
        // Digests are uniform: two words are enough.
        hasher.combine(words.0)
        hasher.combine(words.1)
    }
}

/// Algorithms fetched once: a fetch by name costs more than a short digest.
struct Algorithm: @unchecked Sendable {
    // Fetched algorithms are immutable, counted, and never released here.
    let pointer: OpaquePointer

    static let sha256 = Algorithm(pointer: EVP_MD_fetch(nil, "SHA256", nil) ?? EVP_sha256())
    static let aes128GCM = Algorithm(pointer: EVP_CIPHER_fetch(nil, "AES-128-GCM", nil) ?? EVP_aes_128_gcm())
    static let aes256CBC = Algorithm(pointer: EVP_CIPHER_fetch(nil, "AES-256-CBC", nil) ?? EVP_aes_256_cbc())
}
