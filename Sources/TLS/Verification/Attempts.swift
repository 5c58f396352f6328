/// Attempts to build one chain: OpenSSL's choice, which nearly always holds, then other paths.
struct Attempts {
    let leaf: Certificate
    let candidates: IssuerCandidates
    let anchors: TrustAnchors
    let options: VerificationOptions
    /// The leaf is an anchor itself.
    let standsAlone: Bool

    /// Bounded, since a peer can offer many paths, and each costs signatures.
    private static let maximum = 8

    enum Outcome {
        case wanted(VerifiedChain)
        /// The first valid chain, if none was wanted.
        case unwanted(VerifiedChain)
        case failed(VerificationFailure)
    }

    func run(preferring isWanted: (VerifiedChain) -> Bool) -> Outcome {
        var first: (chain: VerifiedChain?, failure: VerificationFailure?)
        var seen: [[Certificate]] = []
        var search: PathSearch?
        var result = attempt(by: candidates.certificates, to: nil)
        for number in 1...Self.maximum {
            switch result {
            case .success(let chain):
                if isWanted(chain) { return .wanted(chain) }
                first.chain = first.chain ?? chain
                seen.append(chain.certificates)
            case .failure(let failed):
                // The leaf's revocation or expiry doesn't depend on the path.
                if failed.failure.depth == 0, failed.failure.isOfCertificate { return .failed(failed.failure) }
                first.failure = first.failure ?? failed.failure
                seen.append(failed.chain)
            }
            guard number < Self.maximum, !standsAlone else { break }
            var paths =
                search
                ?? PathSearch(
                    from: leaf, by: candidates.certificates, to: anchors, endsAnywhere: options.allowsPartialChain)
            if case .failure(let failed) = result { paths.learn(from: failed) }
            guard let path = paths.next(except: seen) else { break }
            search = paths
            result = attempt(by: path.issuers, to: path.anchors)
        }
        if let chain = first.chain { return .unwanted(chain) }
        return .failed(candidates.explain(first.failure ?? .outOfMemory, anchors: anchors))
    }

    private func attempt(
        by issuers: [Certificate], to end: [Certificate]?
    ) -> Result<VerifiedChain, ChainFailure> {
        anchors.build(from: leaf, by: issuers, to: end, for: .tlsServer, options: options).flatMap { chain in
            if let failed = NameConstraints.failure(of: chain, name: options.name) { return .failure(failed) }
            if let failed = CertificateRules.failure(of: chain, options: options) {
                return .failure(ChainFailure(failure: failed, chain: chain.certificates))
            }
            guard let lists = options.revocationLists, !lists.isEmpty else { return .success(chain) }
            // Last, since it may hash a whole list.
            let check = RevocationCheck(lists: lists, chain: chain.certificates, time: options.time)
            do throws(VerificationFailure) {
                return .success(VerifiedChain(certificates: chain.certificates, unlisted: try check.unlisted()))
            } catch {
                return .failure(ChainFailure(failure: error, chain: chain.certificates))
            }
        }
    }
}
