import CPinproxyOpenSSL

/// The certificates that a peer sent, in order and unverified. Pins are never matched against them.
package struct PresentedChain: Sendable {
    /// The certificate of the key that the peer must prove.
    package let leaf: Certificate
    /// May lack issuers, or hold unrelated certificates.
    package let rest: [Certificate]

    package init(leaf: Certificate, rest: [Certificate] = []) {
        self.leaf = leaf
        self.rest = rest
    }

    /// Parses what a peer sent, leaf first, within ``CertificateLimits``.
    package init(der certificates: [[UInt8]]) throws(CertificateError) {
        let most = CertificateLimits.mostCertificates
        guard certificates.count <= most else {
            throw .costly("the peer sent \(certificates.count) certificates; the limit is \(most)")
        }
        var parsed: [Certificate] = []
        for certificate in certificates { parsed.append(try Certificate(der: certificate)) }
        guard let leaf = parsed.first else { throw .malformed("there is none") }
        self.init(leaf: leaf, rest: Array(parsed.dropFirst()))
    }

    package var certificates: [Certificate] { [leaf] + rest }
}

/// The chain that `TrustAnchors.verify` built, leaf to anchor; `SSL_get0_verified_chain` is empty, since the
/// handshake's own verification is replaced. Pins are matched against this chain alone, not against what a peer
/// appended (CVE-2016-2402).
package struct VerifiedChain: Sendable {
    package let certificates: [Certificate]
    /// Depths of the certificates below the anchor that no revocation list covered; 0 is the leaf.
    package let unlisted: [Int]

    init(certificates: [Certificate], unlisted: [Int]? = nil) {
        self.certificates = certificates
        self.unlisted = unlisted ?? Array(certificates.indices.dropLast())
    }

    /// Their issuers, each once, nearest first.
    package var unlistedIssuers: [Certificate] { unlisted.sorted().map { certificates[$0 + 1] } }

    /// Whether no revocation list covered any of its certificates.
    package var isUnlisted: Bool { unlisted.count == certificates.count - 1 }

    package var leaf: Certificate { certificates[0] }
    /// The trusted end; the leaf itself if that is an anchor.
    package var anchor: Certificate { certificates[certificates.count - 1] }
}

/// A STACK_OF(X509), built once and shared by all that pass it to OpenSSL.
final class CertificateStack: @unchecked Sendable {
    // Not changed after init.
    let pointer: OpaquePointer

    init(_ certificates: some Sequence<Certificate>) {
        guard let stack = OPENSSL_sk_new_null() else { preconditionFailure("out of memory") }
        for certificate in certificates {
            X509_up_ref(certificate.pointer)
            OPENSSL_sk_push(stack, UnsafeRawPointer(certificate.pointer))
        }
        pointer = stack
    }

    deinit { OPENSSL_sk_pop_free(pointer) { X509_free(OpaquePointer($0)) } }

    /// The certificates of a stack that OpenSSL owns.
    static func certificates(of stack: OpaquePointer?) -> [Certificate] {
        guard let stack else { return [] }
        let count = OPENSSL_sk_num(stack)
        guard count > 0 else { return [] }
        return (0..<count).compactMap { index in
            OPENSSL_sk_value(stack, index).map { Certificate(sharing: OpaquePointer($0)) }
        }
    }
}
