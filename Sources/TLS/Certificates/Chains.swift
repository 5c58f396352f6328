import COpenSSL

/// The certificates that a peer sent, in its order and unverified. No pin is ever matched against them.
package struct PresentedChain: Sendable {
    /// The certificate whose key the peer has proved, or will prove, to hold.
    package let leaf: Certificate
    /// Whatever else it sent. It may lack issuers, or hold certificates of others.
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

/// The chain that verification built, from the leaf to the anchor. Made by `TrustAnchors.verify` only.
///
/// `SSL_get0_verified_chain` is empty here, since the handshake's own verification is replaced. Pins are matched
/// against this chain alone: a certificate that the peer merely appended isn't in it (CVE-2016-2402).
package struct VerifiedChain: Sendable {
    /// Leaf … anchor, at least one.
    package let certificates: [Certificate]
    /// Depths below the anchor, 0 for the leaf, of the certificates that no revocation list covered.
    package let unlisted: [Int]

    init(certificates: [Certificate], unlisted: [Int]? = nil) {
        self.certificates = certificates
        self.unlisted = unlisted ?? Array(certificates.indices.dropLast())
    }

    /// The issuers of those, each once, nearest first.
    package var unlistedIssuers: [Certificate] { unlisted.sorted().map { certificates[$0 + 1] } }

    /// True if no revocation list had a say about any of its certificates.
    package var isUnlisted: Bool { unlisted.count == certificates.count - 1 }

    package var leaf: Certificate { certificates[0] }
    /// The trusted end of the chain; the leaf itself where it was its own anchor.
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
