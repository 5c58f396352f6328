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
    /// Seconds for which the leaf may be valid, its first and its last one counted (RFC 5280 section
    /// 4.1.2.5). nil: any.
    package var maximumLeafLifetime: Int64?

    package init(
        name: ServerName?, time: UnixTime, allowsPartialChain: Bool = false, revocationLists: RevocationLists? = nil,
        maximumLeafLifetime: Int64? = nil
    ) {
        self.name = name
        self.time = time
        self.allowsPartialChain = allowsPartialChain
        self.revocationLists = revocationLists
        self.maximumLeafLifetime = maximumLeafLifetime
    }
}

extension TrustAnchors {
    /// The bit strength asked of every key and signature: OpenSSL's level 2, 112 bits. RSA below 2048
    /// and SHA-1 are refused. An anchor's signature of itself proves nothing and isn't looked at.
    static let securityLevel: CInt = 2

    /// Issuers between leaf and anchor, at most. Chains of the web have one or two.
    static let maximumIntermediates: CInt = 8

    /// Builds a chain from the leaf to an anchor, and checks it: signatures, dates at `options.time`,
    /// RFC 5280's rules as X509_STRICT has them and those of `CertificateRules`, key usage for a TLS
    /// server, path lengths and name constraints, strength, revocation lists, and the name, in
    /// subjectAltName only (RFC 9525: no CN; a wildcard is the whole left-most label and stands for one
    /// label).
    ///
    /// The certificates presented after the leaf are candidates for issuers, in any order; those that
    /// the chain doesn't need change nothing, even if they are bad ones that would fit. Anchors are
    /// preferred to them, and from the first anchor on, every certificate of the chain is one.
    package func verify(
        _ presented: PresentedChain, options: VerificationOptions
    ) -> Result<VerifiedChain, VerificationFailure> {
        if let text = CertificateRules.unreadable(presented.leaf) {
            return .failure(VerificationFailure(.malformed(text), depth: 0, certificate: presented.leaf))
        }
        // OpenSSL hangs issuers above a leaf that is an anchor itself. They could only spoil the verdict,
        // and they would stand in the chain with nobody having vouched for them.
        let standsAlone = options.allowsPartialChain && contains(presented.leaf)
        var candidates = IssuerCandidates(standsAlone ? PresentedChain(leaf: presented.leaf) : presented)
        var first: VerificationFailure?
        for _ in 0..<Self.maximumAttempts {
            let failed: ChainFailure
            switch attempt(presented.leaf, candidates, options) {
            case .success(let chain): return .success(chain)
            case .failure(let failure): failed = failure
            }
            first = first ?? failed.failure
            // Whether the leaf is revoked doesn't hang on the way up from it.
            let isFinal = failed.failure.depth == 0 && failed.failure.reason == .revoked
            if isFinal || !candidates.remove(failed) { break }
        }
        return .failure(candidates.explain(first ?? .outOfMemory))
    }

    /// OpenSSL takes the first issuer that fits and doesn't come back to try the next, such as a good
    /// intermediate beside one of the same name and key that leads nowhere. So the one at fault is taken
    /// away, and it is asked again, this often.
    private static let maximumAttempts = 8

    private func attempt(
        _ leaf: Certificate, _ candidates: IssuerCandidates, _ options: VerificationOptions
    ) -> Result<VerifiedChain, ChainFailure> {
        // Checking a list means to hash all of it: only for a chain that holds otherwise.
        var unlisted = options
        unlisted.revocationLists = nil
        let built = build(from: leaf, by: candidates.certificates, for: .tlsServer, options: unlisted).flatMap {
            chain in
            CertificateRules.failure(of: chain, options: options)
                .map { .failure(ChainFailure(failure: $0, chain: chain.certificates)) } ?? .success(chain)
        }
        guard let lists = options.revocationLists, !lists.isEmpty, case .success(let chain) = built else {
            return built
        }
        return build(from: leaf, by: Array(chain.certificates.dropFirst()), for: .tlsServer, options: options)
    }
}
