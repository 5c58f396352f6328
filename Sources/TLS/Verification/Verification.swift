import CPinproxyOpenSSL
import Glibc

extension TrustAnchors {
    /// OpenSSL's level 2, 112 bits: no RSA below 2048 bits, no SHA-1. An anchor's own signature isn't checked.
    static let securityLevel: CInt = 2

    /// Issuers between leaf and anchor. Real chains have one or two.
    static let maximumIntermediates: CInt = 8

    /// Builds a chain from the leaf to an anchor, and checks it: signatures, dates at `options.time` inclusive, RFC
    /// 5280 by X509_STRICT and `CertificateRules`, key usage for a TLS server, path lengths, name constraints (the
    /// anchor's too), strength, revocation lists, and the name, in subjectAltName only (RFC 9525: a wildcard is the
    /// whole left-most label).
    ///
    /// The certificates after the leaf are candidate issuers in any order. Anchors are preferred to them, and above the
    /// first anchor there are only anchors. An anchor that isn't self-signed ends a chain if no self-signed one does;
    /// what a self-signed one above it refuses stays refused: revocation, name constraints, path length.
    ///
    /// Takes the first valid path, within a bound of work (``ProvenChains`` keeps it).
    /// - Parameter isWanted: called for each valid chain; if none is wanted, the first is returned.
    package func verify(
        _ presented: PresentedChain, options: VerificationOptions,
        preferring isWanted: (VerifiedChain) -> Bool = { _ in true }
    ) -> Result<VerifiedChain, VerificationFailure> {
        let question = ProvenChains.Question(presented, options)
        if let question, let chain = proven.chain(for: question, at: options.time), isWanted(chain) {
            return .success(chain)
        }
        let result = searchToEveryAnchor(presented, options: options, preferring: isWanted)
        if let question, case .success(let chain) = result { proven.keep(chain, for: question) }
        return result
    }

    private func searchToEveryAnchor(
        _ presented: PresentedChain, options: VerificationOptions, preferring isWanted: (VerifiedChain) -> Bool
    ) -> Result<VerifiedChain, VerificationFailure> {
        let first: Result<VerifiedChain, VerificationFailure>
        switch search(presented, options: options, preferring: isWanted) {
        case .wanted(let chain): return .success(chain)
        case .failed(let failure) where Self.standing.contains(failure.reason): return .failure(failure)
        case .unwanted(let chain): first = .success(chain)
        case .failed(let failure): first = .failure(failure)
        }
        guard !options.allowsPartialChain, certificates.contains(where: { !$0.isSelfSigned }) else { return first }
        var shorter = options
        shorter.allowsPartialChain = true
        switch (search(presented, options: shorter, preferring: isWanted), first) {
        case (.wanted(let chain), _), (.unwanted(let chain), .failure): return .success(chain)
        // Without a self-signed anchor, the shorter chain's failure says more.
        case (.failed(let other), .failure(let failure)) where failure.isWantOfAnchor: return .failure(other)
        default: return first
        }
    }

    /// Refusals by an authority above an anchor that isn't self-signed.
    private static let standing: Set<VerificationFailure.Reason> = [
        .revoked, .revocationUnknown, .nameConstraint, .pathTooLong, .distrusted,
    ]

    private func search(
        _ presented: PresentedChain, options: VerificationOptions, preferring isWanted: (VerifiedChain) -> Bool
    ) -> Attempts.Outcome {
        if let text = CertificateRules.unreadable(presented.leaf) {
            return .failed(VerificationFailure(.malformed(text), depth: 0, certificate: presented.leaf))
        }
        // OpenSSL would append unverified issuers to a leaf that is an anchor.
        let standsAlone = options.allowsPartialChain && contains(presented.leaf)
        let candidates = IssuerCandidates(standsAlone ? PresentedChain(leaf: presented.leaf) : presented)
        return Attempts(
            leaf: presented.leaf, candidates: candidates, anchors: self, options: options, standsAlone: standsAlone
        ).run(preferring: isWanted)
    }
}

extension VerificationFailure {
    fileprivate var isWantOfAnchor: Bool {
        switch reason {
        case .unknownIssuer, .untrustedRoot, .selfSigned: true
        default: false
        }
    }
}
