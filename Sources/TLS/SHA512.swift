import CPinproxyOpenSSL

/// SHA-512, for records that ask for it (TLSA matching type 2).
package enum SHA512 {
    package static func of(_ bytes: [UInt8]) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: 64)
        let done = EVP_Digest(bytes, bytes.count, &output, nil, EVP_sha512(), nil)
        precondition(done == 1, "SHA-512 is not available in OpenSSL")
        return output
    }
}
