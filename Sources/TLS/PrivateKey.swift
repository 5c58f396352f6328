import COpenSSL

/// A private key, able to sign.
package final class PrivateKey: @unchecked Sendable {
    // An EVP_PKEY is counted with atomics and not changed after it is made; the prepared signer is
    // only ever duplicated.
    let pointer: OpaquePointer
    private let preparedSigner: OpaquePointer?

    private init(owning pointer: OpaquePointer) {
        self.pointer = pointer
        preparedSigner = Self.prepareSigner(pointer)
    }

    deinit {
        EVP_MD_CTX_free(preparedSigner)
        EVP_PKEY_free(pointer)
    }

    /// A new key on the curve P-256.
    package static func generateP256() throws(KeyError) -> PrivateKey {
        OpenSSLErrorQueue.clear()
        guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else {
            throw .failed(OpenSSLErrorQueue.takeReason())
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { throw .failed(OpenSSLErrorQueue.takeReason()) }
        return PrivateKey(owning: key)
    }

    /// The first private key of a PEM file: PKCS#8 or the older forms, not encrypted.
    package convenience init(pem: [UInt8]) throws(KeyError) {
        OpenSSLErrorQueue.clear()
        let bio = MemoryBIO(pem)
        var asked = false
        // Without a callback OpenSSL would ask for the password on the terminal.
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

    /// The private key as PKCS#8 in PEM, not encrypted.
    package var pem: String {
        let bio = MemoryBIO()
        PEM_write_bio_PKCS8PrivateKey(bio.pointer, pointer, nil, nil, 0, nil, nil)
        return bio.text
    }

    /// The public half.
    package var publicKey: PublicKey {
        EVP_PKEY_up_ref(pointer)
        return PublicKey(owning: pointer)
    }

    /// The digest of the public half's SubjectPublicKeyInfo.
    package var spkiSHA256: SHA256Digest { SHA256Digest.of(DER.bytes { i2d_PUBKEY(pointer, $0) }) }

    /// True if the certificate was issued for this key.
    package func matches(_ certificate: Certificate) -> Bool {
        guard let certified = X509_get0_pubkey(certificate.pointer) else { return false }
        return EVP_PKEY_eq(certified, pointer) == 1
    }

    /// Signs with SHA-256: ECDSA gives the DER of RFC 3279 section 2.2.3, RSA PKCS#1 v1.5, Ed25519 its
    /// plain 64 bytes. Safe from any thread; costs little more than the bare signature, because the
    /// algorithms were looked up once when the key was made.
    package func sign(_ message: [UInt8]) throws(KeyError) -> [UInt8] {
        OpenSSLErrorQueue.clear()
        guard let preparedSigner, let signer = EVP_MD_CTX_new() else {
            throw .failed("this kind of key can't sign")
        }
        defer { EVP_MD_CTX_free(signer) }
        var length = Int(EVP_PKEY_get_size(pointer))
        var signature = [UInt8](repeating: 0, count: length)
        guard EVP_MD_CTX_copy_ex(signer, preparedSigner) == 1,
            EVP_DigestSign(signer, &signature, &length, message, message.count) == 1
        else { throw .failed(OpenSSLErrorQueue.takeReason()) }
        signature.removeSubrange(length...)
        return signature
    }

    private static func prepareSigner(_ key: OpaquePointer) -> OpaquePointer? {
        guard let signer = EVP_MD_CTX_new() else { return nil }
        // Ed25519 and Ed448 hash by themselves and take no digest.
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
