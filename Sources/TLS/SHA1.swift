import CPinproxyOpenSSL

/// SHA-1, for protocols that ask for it and don't rely on it: the handshake of a WebSocket (RFC 6455 section 1.3).
package enum SHA1 {
    private static let algorithm = EVP_MD_fetch(nil, "SHA1", nil).map(Algorithm.init)

    /// 20 bytes; nil if OpenSSL is configured without it.
    package static func digest(of bytes: [UInt8]) -> [UInt8]? {
        guard let algorithm else { return nil }
        var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        ERR_clear_error()
        guard EVP_Digest(bytes, bytes.count, &output, &length, algorithm.pointer, nil) == 1 else { return nil }
        return Array(output.prefix(Int(length)))
    }
}
