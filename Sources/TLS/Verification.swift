import COpenSSL
import Glibc

/// What a chain is verified for.
package struct VerificationOptions: Sendable {
    /// The name to find in the leaf's subjectAltName. nil: any name will do, a choice to be loud about.
    package var name: ServerName?
    /// The instant at which the dates must hold.
    package var time: UnixTime
    /// True if a chain may end at an anchor that is not self-signed: a pinned leaf or intermediate.
    package var allowsPartialChain: Bool
    /// Each certificate below the anchor is looked up in the list of its issuer, where there is one: it
    /// must not be in it, and the list must be the issuer's, whole, and current at `time`.
    package var revocationLists: RevocationLists?

    package init(
        name: ServerName?, time: UnixTime, allowsPartialChain: Bool = false, revocationLists: RevocationLists? = nil
    ) {
        self.name = name
        self.time = time
        self.allowsPartialChain = allowsPartialChain
        self.revocationLists = revocationLists
    }
}

extension TrustAnchors {
    /// The bit strength asked of every key and signature: OpenSSL's level 2, 112 bits. RSA below 2048
    /// and SHA-1 are refused. An anchor's signature of itself proves nothing and isn't looked at.
    static let securityLevel: CInt = 2

    /// Issuers between leaf and anchor, at most. Chains of the web have one or two.
    static let maximumIntermediates: CInt = 8

    /// Builds a chain from the leaf to an anchor, and checks it: signatures, dates at `options.time`,
    /// RFC 5280's rules as X509_STRICT has them, key usage for a TLS server, path lengths and name
    /// constraints, strength, and the name, in subjectAltName only (RFC 9525: no CN; a wildcard is the
    /// whole left-most label and stands for one label).
    ///
    /// The certificates presented after the leaf are candidates for issuers, in any order; those that
    /// the chain doesn't need change nothing. Anchors are preferred to them, and from the first anchor
    /// on, every certificate of the chain is one.
    package func verify(
        _ presented: PresentedChain, options: VerificationOptions
    ) -> Result<VerifiedChain, VerificationFailure> {
        // OpenSSL hangs issuers above a leaf that is an anchor itself. They could only spoil the verdict,
        // and they would stand in the chain with nobody having vouched for them.
        let standsAlone = options.allowsPartialChain && contains(presented.leaf)
        return build(from: presented.leaf, by: standsAlone ? [] : presented.rest, for: .tlsServer, options: options)
    }
}
