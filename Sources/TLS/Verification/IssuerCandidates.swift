import CPinproxyOpenSSL

/// The certificates of a presented chain that may be above its leaf: those named as an issuer, each once. Others that a
/// peer appends cost nothing.
struct IssuerCandidates {
    /// Per chain; real ones have fewer than five.
    static let limit = 20

    private(set) var certificates: [Certificate] = []
    /// Certificates that no chain may contain, with the reason.
    private(set) var unusable: [(certificate: Certificate, fault: RuleFault)] = []
    /// There were more than the limit.
    private(set) var isCut = false

    init(_ presented: PresentedChain) {
        var rest = presented.rest
        var below = [presented.leaf][...]
        while let subject = below.popFirst(), !isCut {
            let name = X509_get_issuer_name(subject.pointer)
            rest.removeAll { certificate in
                guard X509_NAME_cmp(name, X509_get_subject_name(certificate.pointer)) == 0 else { return false }
                if certificate != presented.leaf, !certificates.contains(certificate), add(certificate) {
                    below.append(certificate)
                }
                return true
            }
        }
    }

    /// False for no further search.
    private mutating func add(_ certificate: Certificate) -> Bool {
        guard certificates.count + unusable.count < Self.limit else {
            isCut = true
            return false
        }
        // OpenSSL takes no unreadable issuer, and a weak key may be slow to verify with.
        let unreadable = CertificateRules.unreadable(certificate).map { RuleFault.malformed($0) }
        if let fault = unreadable ?? KeyRules.fault(of: certificate) {
            unusable.append((certificate, fault))
            return false
        }
        certificates.append(certificate)
        return true
    }

    /// Replaces a missing issuer's failure by the reason why a candidate can't be used.
    func explain(_ failure: VerificationFailure, anchors: TrustAnchors) -> VerificationFailure {
        var failure = failure
        if failure.reason == .unknownIssuer, let subject = failure.certificate {
            let name = X509_get_issuer_name(subject.pointer)
            func isNamed(_ certificate: Certificate) -> Bool {
                X509_NAME_cmp(name, X509_get_subject_name(certificate.pointer)) == 0
            }
            let unreadable = anchors.certificates.lazy.filter(isNamed).compactMap { anchor in
                CertificateRules.unreadable(anchor).map { (anchor, RuleFault.malformed($0)) }
            }
            let found: (certificate: Certificate, fault: RuleFault)? =
                unusable.first { isNamed($0.certificate) } ?? unreadable.first
            if let found {
                failure = VerificationFailure(found.fault, depth: failure.depth + 1, certificate: found.certificate)
            }
        }
        return isCut
            ? failure.adding("of what the server sent, only \(Self.limit) certificates were checked") : failure
    }
}
