package import PinproxyTLS

extension SecurityPolicy {
    /// Judges a stapled OCSP response and certificate timestamps once they have arrived: an accepted chain may be
    /// refused now, never the reverse. A response must be good, unless `ocsp` is `ignore`: an expired one may be
    /// replayed. A responder's unsigned error ("try later") counts as no response.
    package func confirm(_ verdict: Verdict, with evidence: PeerEvidence, at time: UnixTime) -> Verdict {
        var verdict = verdict
        verdict.evidence = evidence
        guard verdict.isAccepted, let chain = verdict.trustedChain ?? verdict.chain else { return verdict }
        switch status(of: chain, evidence, at: time) {
        case .success(let status): verdict.validUntil = min(verdict.validUntil, status?.end ?? .max)
        case .failure(let failure): return refused(verdict, .status(failure), chain)
        }
        if case .failure(let failure)? = transparency(of: chain, evidence, at: time) {
            return refused(verdict, .transparency(failure), chain)
        }
        return verdict
    }

    /// Nil without a response, if none is required.
    func status(
        of chain: VerifiedChain, _ evidence: PeerEvidence, at time: UnixTime
    ) -> Result<OCSPStatus?, StatusFailure> {
        if requirements.stapling == .ignore { return .success(nil) }
        let missing: StatusFailure? =
            requirements.stapling == .require ? .required : chain.leaf.mustStaple ? .promised : nil
        guard let response = evidence.ocspResponse else { return missing.map { .failure($0) } ?? .success(nil) }
        switch chain.checkStatus(response, at: time) {
        case .success(let status): return .success(status)
        case .failure(.errorStatus) where missing == nil, .failure(.noIssuer) where missing == nil: return .success(nil)
        case .failure(let failure): return .failure(.response(failure))
        }
    }

    /// Nil if no timestamps are required.
    func transparency(
        of chain: VerifiedChain, _ evidence: PeerEvidence?, at time: UnixTime
    ) -> Result<TransparencyResult, TransparencyFailure>? {
        requirements.transparencyLogs.map { chain.checkTransparency(evidence, logs: $0, at: time) }
    }

    private func refused(_ verdict: Verdict, _ reason: Refusal.Reason, _ chain: VerifiedChain) -> Verdict {
        var refused = verdict
        refused.outcome = .refused(
            Refusal(reason: reason, host: verdict.host, policy: self, chain: chain, presented: verdict.presented))
        (refused.matchedPin, refused.matchedDepth, refused.report) = (nil, nil, nil)
        refused.validUntil = .min
        return refused
    }
}
