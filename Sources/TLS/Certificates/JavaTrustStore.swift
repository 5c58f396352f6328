import CPinproxyOpenSSL

/// Trusted certificates for a JVM (`javax.net.ssl.trustStore`): PKCS#12, RFC 7292. Java trusts only certificates with
/// an attribute of Oracle's, and requires a password for the MAC.
package enum JavaTrustStore {
    package static let password = "changeit"
    private static let trustedKeyUsage = "2.16.840.1.113894.746875.1.1"
    private static let anyKeyUsage = "2.5.29.37.0"
    private static let iterations: CInt = 10_000

    /// - Throws: OpenSSL's reason.
    package static func encode(_ certificates: [Certificate]) throws(CertificateError) -> [UInt8] {
        OpenSSLErrorQueue.clear()
        guard let bytes = make(certificates) else { throw .malformed(OpenSSLErrorQueue.takeReason()) }
        return bytes
    }

    private static func make(_ certificates: [Certificate]) -> [UInt8]? {
        var bags: OpaquePointer?
        var safes: OpaquePointer?
        defer {
            OPENSSL_sk_pop_free(bags) { PKCS12_SAFEBAG_free(OpaquePointer($0)) }
            OPENSSL_sk_pop_free(safes) { PKCS7_free($0?.assumingMemoryBound(to: PKCS7.self)) }
        }
        guard let usage = OBJ_txt2obj(anyKeyUsage, 1) else { return nil }
        defer { ASN1_OBJECT_free(usage) }
        for (index, certificate) in certificates.enumerated() {
            let name = Array("pinproxy-\(index)".utf8)
            guard let bag = PKCS12_add_cert(&bags, certificate.pointer),
                PKCS12_add_friendlyname_utf8(bag, name.map { CChar(bitPattern: $0) } + [0], CInt(name.count)) == 1,
                PKCS12_add1_attr_by_txt(
                    bag, trustedKeyUsage, V_ASN1_OBJECT, UnsafeRawPointer(usage).assumingMemoryBound(to: UInt8.self), -1
                ) == 1
            else { return nil }
        }
        guard PKCS12_add_safe(&safes, bags, -1, 0, nil) == 1, let store = PKCS12_add_safes(safes, 0) else { return nil }
        defer { PKCS12_free(store) }
        guard PKCS12_set_mac(store, password, -1, nil, 0, iterations, EVP_sha256()) == 1 else { return nil }
        let bio = MemoryBIO()
        guard i2d_PKCS12_bio(bio.pointer, store) == 1 else { return nil }
        return bio.bytes
    }
}
