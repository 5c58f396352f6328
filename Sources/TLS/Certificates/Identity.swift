import CPinproxyOpenSSL
import CPinproxyShims

/// A certificate with its issuers and key, for one side of a connection.
package struct Identity: Sendable {
    /// Leaf first, then its issuers in order; the root may be left out.
    package let chain: [Certificate]
    package let key: PrivateKey
    let issuers: CertificateStack

    /// Fails if the chain is empty or the key isn't the leaf's.
    package init(chain: [Certificate], key: PrivateKey) throws(IdentityError) {
        guard let leaf = chain.first else { throw .noCertificate }
        guard key.matches(leaf) else { throw .keyMismatch(subject: leaf.subject) }
        self.chain = chain
        self.key = key
        issuers = CertificateStack(chain.dropFirst())
    }

    package var leaf: Certificate { chain[0] }

    /// This identity with its leaf parsed. A leaf built field by field is encoded for each handshake; parsing it costs
    /// some fifteen times as much, once.
    package var parsedAgain: Identity {
        guard let leaf = try? Certificate(der: leaf.der),
            let same = try? Identity(chain: [leaf] + chain.dropFirst(), key: key)
        else {
            return self
        }
        return same
    }
}

package enum IdentityError: Error, Sendable, Hashable, CustomStringConvertible {
    case noCertificate
    case noKey
    case keyMismatch(subject: String)
    case wrongPassword
    /// A PKCS#12 file is encrypted in a way that OpenSSL 3 no longer supports.
    case legacyEncryption
    /// Not a PKCS#12 file; the text is OpenSSL's reason.
    case malformed(String)

    package var description: String {
        switch self {
        case .noCertificate: "there is no certificate"
        case .noKey: "there is no private key"
        case .wrongPassword: "the password is not the one that the file is encrypted with"
        case .legacyEncryption:
            "it is encrypted with an old algorithm (RC2) that OpenSSL 3 no longer supports; re-encode it with openssl "
                + "pkcs12 -legacy -in OLD -nodes -out ALL.pem, openssl pkcs12 -export -in ALL.pem -out NEW, and remove "
                + "ALL.pem"
        case .malformed(let reason): "not a PKCS#12 file: \(reason)"
        case .keyMismatch(let subject):
            """
            the private key is not the key of the first certificate (\(subject)); the server's own certificate has to \
            come first
            """
        }
    }
}

extension Identity {
    /// The identity of a PKCS#12 file (RFC 7292): its first key, that key's certificate, and the issuers in order.
    package init(pkcs12 bytes: [UInt8], password: String?) throws(IdentityError) {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        let (file, isWhole) = bytes.withUnsafeBufferPointer { bytes -> (OpaquePointer?, Bool) in
            guard let start = bytes.baseAddress else { return (nil, false) }
            var cursor: UnsafePointer<UInt8>? = start
            return (d2i_PKCS12(nil, &cursor, bytes.count), cursor == start + bytes.count)
        }
        guard let file else { throw .malformed(OpenSSLErrorQueue.takeReason()) }
        defer { PKCS12_free(file) }
        guard isWhole else { throw .malformed("there are bytes after it") }
        var key: OpaquePointer?
        var leaf: OpaquePointer?
        var others: OpaquePointer?
        guard PKCS12_parse(file, password, &key, &leaf, &others) == 1 else { throw Self.failure() }
        defer { OPENSSL_sk_pop_free(others) { X509_free($0.map { OpaquePointer($0) }) } }
        let certificate = leaf.map { Certificate(owning: $0) }
        guard let key = key.map({ PrivateKey(owning: $0) }) else { throw .noKey }
        guard let certificate else { throw .noCertificate }
        try self.init(chain: certificate.chain(through: CertificateStack.certificates(of: others)), key: key)
    }

    /// The error that PKCS12_parse left in the queue.
    private static func failure() -> IdentityError {
        let code = OpenSSLErrorQueue.take()
        return switch (ERR_GET_LIB(code), ERR_GET_REASON(code)) {
        case (ERR_LIB_PKCS12, PKCS12_R_MAC_VERIFY_FAILURE): .wrongPassword
        // No provider has the cipher.
        case (ERR_LIB_EVP, shim_ERR_R_UNSUPPORTED): .legacyEncryption
        default: .malformed(OpenSSLErrorQueue.reason(of: code))
        }
    }
}
