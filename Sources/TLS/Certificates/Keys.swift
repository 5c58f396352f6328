import CPinproxyOpenSSL

/// Why bytes are not a key, or an operation failed.
package enum KeyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Not a key in a known form; OpenSSL's reason.
    case malformed(String)
    /// Encrypted keys are not supported.
    case encrypted
    /// OpenSSL failed, with this reason.
    case failed(String)

    package var description: String {
        switch self {
        case .malformed(let reason): "not a key: \(reason)"
        case .encrypted: "the private key is encrypted: decrypt it first (openssl pkey -in FILE -out FILE)"
        case .failed(let reason): "the key can't be used: \(reason)"
        }
    }
}

/// A public key: a SubjectPublicKeyInfo of any kind that OpenSSL knows.
package final class PublicKey: @unchecked Sendable {
    // An EVP_PKEY is counted with atomics and not changed after it is made.
    let pointer: OpaquePointer

    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { EVP_PKEY_free(pointer) }

    /// From exactly one SubjectPublicKeyInfo in DER (RFC 5280 section 4.1).
    package convenience init(der: [UInt8]) throws(KeyError) {
        OpenSSLErrorQueue.clear()
        let key = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            guard let start = bytes.baseAddress else { return nil }
            var cursor: UnsafePointer<UInt8>? = start
            guard let key = d2i_PUBKEY(nil, &cursor, bytes.count) else { return nil }
            guard cursor == start + bytes.count else {
                EVP_PKEY_free(key)
                return nil
            }
            return key
        }
        guard let key else { throw .malformed(OpenSSLErrorQueue.takeReason()) }
        self.init(owning: key)
    }

    /// The first `PUBLIC KEY` block of a PEM file.
    package convenience init(pem: [UInt8]) throws(KeyError) {
        OpenSSLErrorQueue.clear()
        let bio = MemoryBIO(pem)
        guard let key = PEM_read_bio_PUBKEY(bio.pointer, nil, nil, nil) else {
            throw .malformed(OpenSSLErrorQueue.takeReason())
        }
        self.init(owning: key)
    }

    package var der: [UInt8] { DER.bytes { i2d_PUBKEY(pointer, $0) } }

    /// The digest in a `sha256/` pin (RFC 7469 section 2.4).
    package var spkiSHA256: SHA256Digest { SHA256Digest.of(der) }

    /// Kind and size for display: `EC P-256`, `RSA 2048`, `Ed25519`.
    package var keyDescription: String { KeyDescription.of(pointer) }
}

extension PublicKey: Equatable {
    package static func == (left: PublicKey, right: PublicKey) -> Bool {
        EVP_PKEY_eq(left.pointer, right.pointer) == 1
    }
}

enum KeyDescription {
    static func of(_ key: OpaquePointer) -> String {
        switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_RSA, EVP_PKEY_RSA_PSS: "RSA \(EVP_PKEY_get_bits(key))"
        case EVP_PKEY_EC: "EC \(curve(of: key))"
        case EVP_PKEY_ED25519: "Ed25519"
        case EVP_PKEY_ED448: "Ed448"
        case EVP_PKEY_DSA: "DSA \(EVP_PKEY_get_bits(key))"
        default: EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "unknown key"
        }
    }

    static func curve(of key: OpaquePointer) -> String {
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1 else { return "with its own curve" }
        let text = String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return switch text {
        case "prime256v1", "P-256": "P-256"
        case "secp384r1", "P-384": "P-384"
        case "secp521r1", "P-521": "P-521"
        default: text
        }
    }
}
