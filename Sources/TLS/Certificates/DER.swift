import CPinproxyOpenSSL

/// Encoding into memory of OpenSSL's own, copied out and freed.
enum DER {
    static func bytes(_ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> CInt) -> [UInt8] {
        var output: UnsafeMutablePointer<UInt8>?
        let count = Int(encode(&output))
        guard let output, count > 0 else { return [] }
        defer { CRYPTO_free(output, nil, 0) }
        return [UInt8](UnsafeBufferPointer(start: output, count: count))
    }
}
