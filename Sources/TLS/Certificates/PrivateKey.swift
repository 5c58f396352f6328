import CPinproxyOpenSSL
import CPinproxyShims

package final class PrivateKey: @unchecked Sendable {
    // An EVP_PKEY has an atomic reference count and never changes; the prepared signer is only duplicated.
    let pointer: OpaquePointer
    private let preparedSigner: OpaquePointer?

    /// Takes over one reference.
    init(owning pointer: OpaquePointer) {
        self.pointer = pointer
        preparedSigner = Self.prepareSigner(pointer)
    }

    deinit {
        EVP_MD_CTX_free(preparedSigner)
        EVP_PKEY_free(pointer)
    }

    /// A new P-256 key. An EC_KEY goes into a certificate in 6 µs; OpenSSL 3.0 encodes and decodes a provider's key
    /// first (230 µs).
    package static func generateP256() throws(KeyError) -> PrivateKey {
        OpenSSLErrorQueue.clear()
        guard let key = shim_EVP_PKEY_new_P256() else { throw .failed(OpenSSLErrorQueue.takeReason()) }
        return PrivateKey(owning: key)
    }

    /// The first private key of a PEM file: PKCS#8 or the older forms, not encrypted.
    package convenience init(pem: [UInt8]) throws(KeyError) {
        OpenSSLErrorQueue.clear()
        let bio = MemoryBIO(pem)
        var asked = false
        // Without a callback OpenSSL prompts on the terminal.
        let key = PEM_read_bio_PrivateKey(
            bio.pointer, nil,
            { _, _, _, asked in
                asked?.assumingMemoryBound(to: Bool.self).pointee = true
                return -1
            }, &asked)
        guard let key else {
            let reason = OpenSSLErrorQueue.takeReason()
            throw asked ? .encrypted : .malformed(reason)
        }
        self.init(owning: key)
    }

    /// The first private key of a PEM file, or a DER file's: PKCS#8, PKCS#1 or RFC 5915, not encrypted.
    package convenience init(derOrPEM bytes: [UInt8]) throws(KeyError) {
        guard !PEM.looksLikePEM(bytes) else {
            try self.init(pem: bytes)
            return
        }
        OpenSSLErrorQueue.clear()
        let (key, isWhole, isEncrypted) = bytes.withUnsafeBufferPointer { bytes -> (OpaquePointer?, Bool, Bool) in
            guard let start = bytes.baseAddress else { return (nil, false, false) }
            var cursor: UnsafePointer<UInt8>? = start
            if let key = d2i_AutoPrivateKey(nil, &cursor, bytes.count) {
                return (key, cursor == start + bytes.count, false)
            }
            cursor = start
            let encrypted = d2i_X509_SIG(nil, &cursor, bytes.count)
            X509_SIG_free(encrypted)
            return (nil, false, encrypted != nil)
        }
        if isEncrypted { throw .encrypted }
        guard let key else { throw .malformed(OpenSSLErrorQueue.takeReason()) }
        guard isWhole else {
            EVP_PKEY_free(key)
            throw .malformed("there are bytes after it")
        }
        self.init(owning: key)
    }

    /// The private key as PKCS#8 in PEM, not encrypted.
    package var pem: String {
        let bio = MemoryBIO()
        PEM_write_bio_PKCS8PrivateKey(bio.pointer, pointer, nil, nil, 0, nil, nil)
        return bio.text
    }

    package var publicKey: PublicKey {
        EVP_PKEY_up_ref(pointer)
        return PublicKey(owning: pointer)
    }

    package var spkiSHA256: SHA256Digest { SHA256Digest.of(DER.bytes { i2d_PUBKEY(pointer, $0) }) }

    package func matches(_ certificate: Certificate) -> Bool {
        guard let certified = X509_get0_pubkey(certificate.pointer) else { return false }
        return EVP_PKEY_eq(certified, pointer) == 1
    }

    /// Signs with SHA-256, on any thread: ECDSA in DER (RFC 3279 section 2.2.3), RSA PKCS#1 v1.5, Ed25519 64 bytes.
    /// Looks algorithms up once per key.
    package func sign(_ message: [UInt8]) throws(KeyError) -> [UInt8] {
        OpenSSLErrorQueue.clear()
        var length = Int(EVP_PKEY_get_size(pointer))
        var signature = [UInt8](repeating: 0, count: length)
        guard preparedSigner != nil else { throw .failed("this kind of key can't sign") }
        guard withSigner({ EVP_DigestSign($0, &signature, &length, message, message.count) == 1 }) else {
            throw .failed(OpenSSLErrorQueue.takeReason())
        }
        signature.removeSubrange(length...)
        return signature
    }

    /// Signs with a copy of the prepared signer. False on failure.
    func withSigner(_ sign: (OpaquePointer) -> Bool) -> Bool {
        guard let preparedSigner, let signer = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(signer) }
        return EVP_MD_CTX_copy_ex(signer, preparedSigner) == 1 && sign(signer)
    }

    private static func prepareSigner(_ key: OpaquePointer) -> OpaquePointer? {
        guard let signer = EVP_MD_CTX_new() else { return nil }
        // Ed25519 and Ed448 take no digest.
        let kind = EVP_PKEY_get_base_id(key)
        let digest = kind == EVP_PKEY_ED25519 || kind == EVP_PKEY_ED448 ? nil : Algorithm.sha256.pointer
        guard EVP_DigestSignInit(signer, nil, digest, nil, key) == 1 else {
            EVP_MD_CTX_free(signer)
            ERR_clear_error()
            return nil
        }
        return signer
    }
}
