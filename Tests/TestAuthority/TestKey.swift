import CPinproxyOpenSSL
import CPinproxyShims
import Synchronization

/// A key pair for tests.
public final class TestKey: @unchecked Sendable {
    // Not changed after init.
    let pointer: OpaquePointer
    public let kind: Kind

    public enum Kind: Sendable, Hashable {
        case p256, p384, p521
        /// A curve that no browser accepts.
        case secp256k1
        case rsa(Int)
        case ed25519
        /// With OpenSSL 3.5: FIPS 204's parameter set 44, 65 or 87.
        case mlDSA(Int)
        /// With OpenSSL 3.5: FIPS 205, which TLS has no number for.
        case slhDSA

        /// OpenSSL's name of the algorithm.
        fileprivate var algorithm: String {
            switch self {
            case .p256, .p384, .p521, .secp256k1: "EC"
            case .rsa: "RSA"
            case .ed25519: "ED25519"
            case .mlDSA(let set): "ML-DSA-\(set)"
            case .slhDSA: "SLH-DSA-SHA2-128f"
            }
        }

        /// Whether the key signs messages directly, not their digests.
        var isWithoutDigest: Bool {
            switch self {
            case .p256, .p384, .p521, .secp256k1, .rsa: false
            case .ed25519, .mlDSA, .slhDSA: true
            }
        }
    }

    public init(_ kind: Kind = .p256) throws {
        let context = EVP_PKEY_CTX_new_from_name(nil, kind.algorithm, nil)
        defer { EVP_PKEY_CTX_free(context) }
        try require(EVP_PKEY_keygen_init(context), "key generation")
        switch kind {
        case .p256: try require(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1), "P-256")
        case .p384: try require(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_secp384r1), "P-384")
        case .p521: try require(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_secp521r1), "P-521")
        case .secp256k1: try require(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_secp256k1), "secp256k1")
        case .rsa(let bits): try require(EVP_PKEY_CTX_set_rsa_keygen_bits(context, CInt(bits)), "RSA \(bits)")
        case .ed25519, .mlDSA, .slhDSA: break
        }
        var key: OpaquePointer?
        try require(EVP_PKEY_keygen(context, &key), "key generation")
        guard let key else { throw AuthorityFailure(what: "key generation") }
        pointer = key
        self.kind = kind
    }

    deinit { EVP_PKEY_free(pointer) }

    private struct Numbered: Hashable {
        let kind: Kind
        let number: Int
    }

    private static let kept = Mutex<[Numbered: TestKey]>([:])

    /// A key for a test that needs no new one. RSA keys take long, so a process makes one for each size and number.
    /// Keys of other kinds are new.
    public static func shared(_ kind: Kind, number: Int = 0) throws -> TestKey {
        guard case .rsa = kind else { return try TestKey(kind) }
        return try kept.withLock { kept in
            let place = Numbered(kind: kind, number: number)
            if let key = kept[place] { return key }
            let key = try TestKey(kind)
            kept[place] = key
            return key
        }
    }

    /// SubjectPublicKeyInfo.
    public var publicKeyDER: [UInt8] { Self.encoded { i2d_PUBKEY(self.pointer, $0) } }

    /// PKCS#8.
    public var privateKeyPEM: String {
        written { PEM_write_bio_PKCS8PrivateKey($0, self.pointer, nil, nil, 0, nil, nil) }
    }

    /// PKCS#8, encrypted with AES-256 and the password.
    public func privateKeyPEM(password: String) -> String {
        written {
            PEM_write_bio_PKCS8PrivateKey(
                $0, self.pointer, EVP_aes_256_cbc(), password, CInt(password.utf8.count), nil, nil)
        }
    }

    public var publicKeyPEM: String { written { PEM_write_bio_PUBKEY($0, self.pointer) } }

    /// PKCS#8 as DER, encrypted with AES-256 and the password.
    public func encryptedDER(password: String) -> [UInt8] {
        let bio = BIO_new(BIO_s_mem())
        defer { BIO_free_all(bio) }
        i2d_PKCS8PrivateKey_bio(
            bio, pointer, EVP_aes_256_cbc(), password, CInt(password.utf8.count), nil, nil)
        var start: UnsafeMutablePointer<CChar>?
        let count = Int(shim_BIO_get_mem_data(bio, &start))
        return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }

    /// The plain private key in the format that its kind had before PKCS#8.
    public var privateKeyDER: [UInt8] { Self.encoded { i2d_PrivateKey(self.pointer, $0) } }

    func sign(_ message: [UInt8], digest: Digest) throws -> [UInt8] {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        let algorithm = kind.isWithoutDigest ? nil : digest.algorithm
        try require(EVP_DigestSignInit(context, nil, algorithm, nil, pointer), "signing")
        var length = Int(EVP_PKEY_get_size(pointer))
        var signature = [UInt8](repeating: 0, count: length)
        try require(EVP_DigestSign(context, &signature, &length, message, message.count), "signing")
        return Array(signature.prefix(length))
    }

    /// The AlgorithmIdentifier of this key's signatures with the digest.
    func signatureAlgorithm(_ digest: Digest) -> [UInt8] {
        switch kind {
        case .ed25519: DERWriter.sequence(DERWriter.identifier("1.3.101.112"))
        // RFC 9881 section 2, RFC 9814 section 3.
        case .mlDSA(let set):
            DERWriter.sequence(DERWriter.identifier("2.16.840.1.101.3.4.3.\(set == 44 ? 17 : set == 65 ? 18 : 19)"))
        case .slhDSA: DERWriter.sequence(DERWriter.identifier("2.16.840.1.101.3.4.3.21"))
        case .p256, .p384, .p521, .secp256k1: DERWriter.sequence(DERWriter.identifier(digest.ecdsa))
        case .rsa: DERWriter.sequence(DERWriter.identifier(digest.rsa), DERWriter.null)
        }
    }

    static func encoded(_ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> CInt) -> [UInt8] {
        var output: UnsafeMutablePointer<UInt8>?
        let count = Int(encode(&output))
        guard let output, count > 0 else { return [] }
        defer { CRYPTO_free(output, nil, 0) }
        return [UInt8](UnsafeBufferPointer(start: output, count: count))
    }

    private func written(_ write: (OpaquePointer?) -> CInt) -> String {
        let bio = BIO_new(BIO_s_mem())
        defer { BIO_free_all(bio) }
        guard write(bio) == 1 else { return "" }
        var start: UnsafeMutablePointer<CChar>?
        let count = Int(shim_BIO_get_mem_data(bio, &start))
        return String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Digests for signatures, including the broken ones.
    public enum Digest: Sendable, Hashable {
        /// For RSA keys only.
        case md5
        case sha1, sha256, sha384, sha512

        var algorithm: OpaquePointer? {
            switch self {
            case .md5: EVP_md5()
            case .sha1: EVP_sha1()
            case .sha256: EVP_sha256()
            case .sha384: EVP_sha384()
            case .sha512: EVP_sha512()
            }
        }

        var ecdsa: String {
            switch self {
            case .md5: preconditionFailure("there is no ECDSA with MD5")
            case .sha1: "1.2.840.10045.4.1"
            case .sha256: "1.2.840.10045.4.3.2"
            case .sha384: "1.2.840.10045.4.3.3"
            case .sha512: "1.2.840.10045.4.3.4"
            }
        }

        var rsa: String {
            switch self {
            case .md5: "1.2.840.113549.1.1.4"
            case .sha1: "1.2.840.113549.1.1.5"
            case .sha256: "1.2.840.113549.1.1.11"
            case .sha384: "1.2.840.113549.1.1.12"
            case .sha512: "1.2.840.113549.1.1.13"
            }
        }
    }
}

/// A step of minting failed.
public struct AuthorityFailure: Error, CustomStringConvertible {
    let what: String
    public var description: String { "test authority: \(what) failed" }
}

func require(_ result: CInt, _ what: String) throws {
    guard result == 1 else {
        ERR_clear_error()
        throw AuthorityFailure(what: what)
    }
}
