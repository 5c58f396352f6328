import COpenSSL

/// The certificates that a peer sent, in its order: a claim, verified by nobody. No pin is ever
/// matched against it.
package struct PresentedChain: Sendable {
    /// The certificate whose key the peer has proved, or will prove, to hold.
    package let leaf: Certificate
    /// Whatever else it sent. It may lack issuers, or hold certificates of others.
    package let rest: [Certificate]

    package init(leaf: Certificate, rest: [Certificate] = []) {
        self.leaf = leaf
        self.rest = rest
    }

    /// Leaf first.
    package var certificates: [Certificate] { [leaf] + rest }
}

/// The chain that verification built, from the leaf to the anchor: each certificate is signed by the
/// next, and the last one is trusted by the anchors' owner. Made by `TrustAnchors.verify` only.
///
/// It stands in the place of `SSL_get0_verified_chain`, which is empty here since the handshake's own
/// verification is replaced, and empty anyhow on a resumed session. Pins are matched against this
/// chain and no other: a certificate that the peer merely appended isn't in it (CVE-2016-2402).
package struct VerifiedChain: Sendable {
    /// Leaf … anchor, at least one.
    package let certificates: [Certificate]

    init(certificates: [Certificate]) { self.certificates = certificates }

    /// The peer's own certificate.
    package var leaf: Certificate { certificates[0] }
    /// The trusted end of the chain; the leaf itself where it was its own anchor.
    package var anchor: Certificate { certificates[certificates.count - 1] }
}

/// What one side of a connection proves itself with: a certificate, its issuers, and the key.
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

    /// The certificate with the key.
    package var leaf: Certificate { chain[0] }
}

/// Why certificates and a key make no identity.
package enum IdentityError: Error, Sendable, Hashable, CustomStringConvertible {
    case noCertificate
    case keyMismatch(subject: String)

    package var description: String {
        switch self {
        case .noCertificate: "there is no certificate"
        case .keyMismatch(let subject):
            "the private key is not the key of the first certificate (\(subject)); the server's own certificate has to come first"
        }
    }
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
