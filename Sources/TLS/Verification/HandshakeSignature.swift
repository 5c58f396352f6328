import CPinproxyOpenSSL

package enum HandshakeSignatureError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Unknown or too weak (SHA-1, MD5, DSA); its number on the wire.
    case scheme(UInt16)
    /// For another kind of key.
    case key(String)
    case signature

    package var description: String {
        switch self {
        case .scheme(let number):
            """
            it is signed by a method that is not accepted \
            (0x\(Hexadecimal.encode([UInt8(number >> 8), UInt8(number & 0xFF)])))
            """
        case .key(let kind): "it is signed by a method that doesn't fit the certificate's key (\(kind))"
        case .signature: "its signature was not made with the certificate's key"
        }
    }
}

extension PublicKey {
    /// Verifies a signature of a TLS 1.2 handshake: RSA (PKCS #1 v1.5 and PSS) and ECDSA with SHA-256, SHA-384 and
    /// SHA-512, Ed25519 and Ed448, at least what the proxy offers as a client. In TLS 1.2 an ECDSA scheme doesn't imply
    /// the curve (RFC 8446 section 4.2.3).
    /// - Parameter scheme: as on the wire (RFC 5246 section 7.4.1.4.1, RFC 8422 section 5.1.3, RFC 8446 section 4.2.3).
    package func verify(
        _ signature: [UInt8], of signed: [UInt8], scheme: UInt16
    ) throws(HandshakeSignatureError) {
        guard let method = SignatureMethod(scheme: scheme) else { throw .scheme(scheme) }
        guard EVP_PKEY_get_base_id(pointer) == method.key else { throw .key(keyDescription) }
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
        defer { EVP_MD_CTX_free(context) }
        // Belongs to the context above.
        var parameters: OpaquePointer?
        guard EVP_DigestVerifyInit(context, &parameters, method.digest, nil, pointer) == 1,
            !method.isPSS
                || (EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) == 1
                    && EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) == 1),
            EVP_DigestVerify(context, signature, signature.count, signed, signed.count) == 1
        else { throw .signature }
    }
}

private struct SignatureMethod {
    /// OpenSSL's number.
    let key: CInt
    /// Nil for methods without a separate digest.
    var digest: OpaquePointer?
    /// Salted (RFC 8017 section 8.1), with a salt as long as the digest; MGF1 with the same hash.
    var isPSS = false

    init?(scheme: UInt16) {
        switch scheme {
        case 0x0401, 0x0501, 0x0601:
            key = EVP_PKEY_RSA
            digest = Self.digest(scheme >> 8)
        case 0x0403, 0x0503, 0x0603:
            key = EVP_PKEY_EC
            digest = Self.digest(scheme >> 8)
        // rsa_pss_rsae for general RSA keys; rsa_pss_pss for PSS keys.
        case 0x0804...0x0806:
            key = EVP_PKEY_RSA
            digest = Self.digest(scheme & 0xFF)
            isPSS = true
        case 0x0809...0x080B:
            key = EVP_PKEY_RSA_PSS
            digest = Self.digest((scheme & 0xFF) - 5)
            isPSS = true
        case 0x0807: key = EVP_PKEY_ED25519
        case 0x0808: key = EVP_PKEY_ED448
        default: return nil
        }
    }

    /// By RFC 5246's number of a hash algorithm.
    private static func digest(_ number: UInt16) -> OpaquePointer? {
        switch number {
        case 4: EVP_sha256()
        case 5: EVP_sha384()
        default: EVP_sha512()
        }
    }
}
