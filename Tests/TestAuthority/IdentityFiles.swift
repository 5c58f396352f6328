import CPinproxyOpenSSL

/// The file formats for keys and certificates.
extension HeldCertificate {
    /// A PKCS#12 file with AES-256, as OpenSSL 3 writes it.
    /// - Parameters:
    ///   - others: further certificates, in the order given; nil: the issuers without the root.
    public func pkcs12(
        password: String?, withKey: Bool = true, withCertificate: Bool = true, others: [HeldCertificate]? = nil
    ) throws -> [UInt8] {
        let stack = OPENSSL_sk_new_null()
        defer { OPENSSL_sk_pop_free(stack) { X509_free($0.map { OpaquePointer($0) }) } }
        for other in others ?? Array(chain.dropFirst()) { OPENSSL_sk_push(stack, UnsafeRawPointer(try other.parsed())) }
        let leaf = withCertificate ? try parsed() : nil
        defer { X509_free(leaf) }
        guard let file = PKCS12_create(password, nil, withKey ? key.pointer : nil, leaf, stack, 0, 0, 0, 0, 0) else {
            ERR_clear_error()
            throw AuthorityFailure(what: "PKCS#12")
        }
        defer { PKCS12_free(file) }
        return TestKey.encoded { i2d_PKCS12(file, $0) }
    }

    /// A request for a certificate of this subject and key.
    public func certificateRequest(breaksSignature: Bool = false) throws -> [UInt8] {
        let algorithm = key.signatureAlgorithm(.sha256)
        let body = DERWriter.sequence(
            DERWriter.value(0x02, [0]), subjectName, key.publicKeyDER, DERWriter.value(0xA0, []))
        var signature = try key.sign(body, digest: .sha256)
        if breaksSignature { signature[signature.count - 1] ^= 1 }
        return DERWriter.sequence(body, algorithm, DERWriter.bits(signature))
    }
}
