import CPinproxyOpenSSL
import Glibc

extension TicketKeys.Key {
    /// Sets up AES-256-CBC and HMAC-SHA-256, the construction of RFC 5077 section 4.
    func prepare(cipher: OpaquePointer?, iv: UnsafePointer<UInt8>, mac: OpaquePointer?, seals: Bool) -> Bool {
        guard EVP_CipherInit_ex(cipher, Algorithm.aes256CBC.pointer, nil, cipherKey, iv, seals ? 1 : 0) == 1 else {
            return false
        }
        return EVP_MAC_init(mac, macKey, macKey.count, MACParameters.sha256.list) == 1
    }
}

/// Parameters of an `EVP_MAC_CTX`. An `OSSL_PARAM` points to its name and value, which OpenSSL reads later: their
/// memory is allocated once and never freed.
/// once and never freed.
private struct MACParameters: @unchecked Sendable {
    // Not changed once it is made.
    let list: UnsafePointer<OSSL_PARAM>

    static let sha256 = MACParameters(digest: "SHA256")

    private init(digest: String) {
        guard let name = strdup(OSSL_MAC_PARAM_DIGEST), let value = strdup(digest) else {
            preconditionFailure("out of memory")
        }
        let list = UnsafeMutablePointer<OSSL_PARAM>.allocate(capacity: 2)
        list.initialize(to: OSSL_PARAM_construct_utf8_string(name, value, 0))
        (list + 1).initialize(to: OSSL_PARAM_construct_end())
        self.list = UnsafePointer(list)
    }
}
