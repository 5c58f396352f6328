import COpenSSL

/// The certificates of a presented chain that may stand above its leaf.
///
/// A peer appends what it likes. Only what somebody below names as its issuer is looked at, each once,
/// so that strangers and repetitions neither cost nor spoil anything.
struct IssuerCandidates {
    /// Looked at for one chain, at most. Real ones have fewer than five.
    static let limit = 20

    private(set) var certificates: [Certificate] = []
    /// True if there were more than the limit.
    private(set) var isCut = false

    init(_ presented: PresentedChain) {
        var rest = presented.rest
        var below = [presented.leaf][...]
        while let subject = below.popFirst(), !isCut {
            let name = X509_get_issuer_name(subject.pointer)
            rest.removeAll { certificate in
                guard X509_NAME_cmp(name, X509_get_subject_name(certificate.pointer)) == 0 else { return false }
                if certificate != presented.leaf, !certificates.contains(certificate) {
                    if certificates.count < Self.limit {
                        certificates.append(certificate)
                        below.append(certificate)
                    } else {
                        isCut = true
                    }
                }
                return true
            }
        }
    }

    /// Takes away what OpenSSL's choice went wrong with, so that it can choose again: the certificate at
    /// fault, or what stands above it. False if none of them came from the peer.
    ///
    /// Those with keys that no chain may have go too: the next attempts needn't do sums with them.
    mutating func remove(_ failed: ChainFailure) -> Bool {
        let depth = failed.failure.depth
        // A bad signature is as likely the fault of a namesake in the issuer's place.
        let first = failed.failure.reason == .badSignature ? depth + 1 : depth
        let suspects = failed.chain.dropFirst(first) + failed.chain.prefix(first).dropFirst()
        guard let culprit = suspects.first(where: certificates.contains) else { return false }
        certificates.removeAll { $0 == culprit }
        certificates.removeAll { KeyRules.fault(of: $0) != nil }
        return true
    }
}
