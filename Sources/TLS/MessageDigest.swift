import CPinproxyOpenSSL

/// The digests of HTTP's Digest authentication (RFC 7616 section 3.2).
package enum MessageDigest: String, Sendable, CaseIterable {
    case md5 = "MD5"
    case sha256 = "SHA-256"
    case sha512Half = "SHA-512-256"

    /// In lower-case hexadecimal; nil if OpenSSL is configured without it, as FIPS requires of MD5.
    package func hex(of bytes: [UInt8]) -> [UInt8]? {
        guard let algorithm else { return nil }
        var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        ERR_clear_error()
        guard EVP_Digest(bytes, bytes.count, &output, &length, algorithm.pointer, nil) == 1 else { return nil }
        return Array(Hexadecimal.encode(Array(output.prefix(Int(length)))).utf8)
    }

    package var isAvailable: Bool { algorithm != nil }

    private var algorithm: Algorithm? {
        switch self {
        case .md5: Self.fetchedMD5
        case .sha256: .sha256
        case .sha512Half: Self.fetchedSHA512Half
        }
    }

    private static let fetchedMD5 = EVP_MD_fetch(nil, "MD5", nil).map(Algorithm.init)
    private static let fetchedSHA512Half = EVP_MD_fetch(nil, "SHA512-256", nil).map(Algorithm.init)
}
