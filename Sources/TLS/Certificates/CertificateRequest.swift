import CPinproxyOpenSSL

/// A PKCS#10 request (RFC 2986), which allows pinning a key before it is certified.
package struct CertificateRequest: Sendable {
    package let subject: String
    package let publicKey: PublicKey

    /// The first request of a PEM file, or a DER file's, with a valid signature.
    package init(derOrPEM bytes: [UInt8]) throws(CertificateRequestError) {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        let der = PEM.looksLikePEM(bytes) ? try Self.body(ofPEM: bytes) : bytes
        let (request, isWhole) = der.withUnsafeBufferPointer { bytes -> (OpaquePointer?, Bool) in
            guard let start = bytes.baseAddress else { return (nil, false) }
            var cursor: UnsafePointer<UInt8>? = start
            return (d2i_X509_REQ(nil, &cursor, bytes.count), cursor == start + bytes.count)
        }
        guard let request else { throw .malformed(OpenSSLErrorQueue.takeReason()) }
        defer { X509_REQ_free(request) }
        guard isWhole else { throw .malformed("there are bytes after it") }
        guard let key = X509_REQ_get_pubkey(request) else { throw .malformed(OpenSSLErrorQueue.takeReason()) }
        publicKey = PublicKey(owning: key)
        guard X509_REQ_verify(request, key) == 1 else { throw .badSignature }
        subject = Certificate.line(X509_REQ_get_subject_name(request))
    }

    private static func body(ofPEM bytes: [UInt8]) throws(CertificateRequestError) -> [UInt8] {
        let blocks: [PEMBlock]
        do { blocks = try PEM.blocks(in: bytes) } catch { throw .pem(error) }
        guard let block = blocks.first(where: { labels.contains($0.label) }) else {
            throw .pem(.noBlock(wanted: "certificate request"))
        }
        return block.der
    }

    private static let labels: Set<String> = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"]
}

package enum CertificateRequestError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The DER is broken; the text is OpenSSL's reason.
    case malformed(String)
    case pem(PEMError)
    /// Its maker doesn't hold the key, or it was changed.
    case badSignature

    package var description: String {
        switch self {
        case .malformed(let reason): "not a certificate request: \(reason)"
        case .pem(let error): error.description
        case .badSignature: "the certificate request is not signed by its own key"
        }
    }
}
