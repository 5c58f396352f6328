package import PinproxyTLS

extension SecurityPolicy {
    /// Judges a server's chain. Pure: the same chain, anchors and clock give the same verdict.
    /// - Parameters:
    ///   - host: the name expected of the server; nil: no check.
    ///   - anchors: of the machine or the configuration; never the proxy's own authority.
    package func evaluate(
        _ presented: PresentedChain, host: ServerName?, anchors: TrustAnchors, at unixTime: UnixTime
    ) -> Verdict {
        Evaluation(policy: self, presented: presented, host: host, anchors: anchors, time: unixTime).verdict()
    }
}

extension SecurityPolicy {
    /// Options of any verification, whichever the anchors.
    private func verificationOptions(name: ServerName?, time: UnixTime) -> VerificationOptions {
        VerificationOptions(
            name: name, time: time, wildcards: WildcardRule(for: name),
            revocationLists: requirements.revocationLists, maximumLeafLifetime: requirements.maximumLeafLifetime)
    }

    /// Verifies with the trust anchors. If several chains are valid, one that a pin matches is preferred.
    func verify(
        _ presented: PresentedChain, to anchors: TrustAnchors, name: ServerName?, time: UnixTime
    ) -> Result<VerifiedChain, VerificationFailure> {
        let options = verificationOptions(name: name, time: time)
        guard mode != .none else { return anchors.verify(presented, options: options) }
        return anchors.verify(presented, options: options) { pins.match(in: $0, position: position) != nil }
    }

    /// Verifies with the pinned certificates as the only anchors.
    /// - Parameters:
    ///   - trusted: the chain to the anchors. It may hold issuers that the server doesn't send.
    ///   - anchors: where to find a certificate, such as a root, pinned by its fingerprint.
    func verifyToPins(
        _ presented: PresentedChain, trusted: VerifiedChain?, anchors: TrustAnchors, name: ServerName?, time: UnixTime
    ) -> Result<VerifiedChain, VerificationFailure> {
        var options = verificationOptions(name: name, time: time)
        options.allowsPartialChain = true
        let known = PresentedChain(
            leaf: presented.leaf, rest: Array(trusted?.certificates.dropFirst().dropLast() ?? []) + presented.rest)
        let pinned = pinnedAnchors ?? TrustAnchors(pins.anchors(with: presented, among: anchors))
        return pinned.verify(known, options: options) { pins.match(in: $0, position: position) != nil }
    }
}

/// One run of a policy: a branch for each row of its table.
private struct Evaluation {
    let policy: SecurityPolicy
    let presented: PresentedChain
    let host: ServerName?
    let anchors: TrustAnchors
    let time: UnixTime

    /// The name to check, if the policy requires that.
    var checkedName: ServerName? { policy.validatesDomainName ? host : nil }

    func verdict() -> Verdict {
        if policy.mode != .none, policy.pins.isEmpty { return refused(.contradiction(.noPins(policy.mode))) }
        let unseen = policy.requirements.keysThatNeedAChain
        if policy.allowsInvalidCertificates, policy.mode != .certificate, !unseen.isEmpty {
            return refused(.contradiction(.requirementsWithoutChain(unseen)))
        }
        if let expiry = policy.expiry, expiry.action == .deny, expiry.hasPassed(at: time) {
            return refused(.expired(expiry))
        }
        return switch (policy.mode, policy.allowsInvalidCertificates) {
        case (.none, false): byAnchors { chain in accepted(chain: chain, trusted: chain) }
        case (.none, true): byNothing()
        case (.certificate, false): byAnchors { chain in byPinnedCertificates(trusted: chain) }
        case (.certificate, true): byPinnedCertificates(trusted: nil)
        case (.publicKey, false): byAnchors { chain in byPinnedKeys(chain) }
        case (.publicKey, true): byLeafKey()
        }
    }

    private func byAnchors(_ next: (VerifiedChain) -> Verdict) -> Verdict {
        switch policy.verify(presented, to: anchors, name: checkedName, time: time) {
        case .success(let chain): next(chain)
        case .failure(let failure): refused(.trust(failure))
        }
    }

    private func byNothing() -> Verdict {
        if checkedName != nil { return refused(.contradiction(.nothingToCheckTheNameBy)) }
        return accepted(chain: nil)
    }

    private func byPinnedKeys(_ chain: VerifiedChain) -> Verdict {
        guard let match = policy.pins.match(in: chain, position: policy.position) else {
            return mismatch(.pinMismatch, chain: chain)
        }
        return accepted(chain: chain, trusted: chain, pin: match.pin, depth: match.depth)
    }

    /// - Parameter trusted: the chain to the anchors, if checked.
    private func byPinnedCertificates(trusted: VerifiedChain?) -> Verdict {
        let result = policy.verifyToPins(
            presented, trusted: trusted, anchors: anchors, name: checkedName, time: time)
        switch result {
        case .failure(let failure):
            return mismatch(.pinnedAnchors(failure), chain: trusted)
        case .success(let chain):
            // The chain to a pinned certificate ends there; pins further up match in the other chain.
            for chain in [chain, trusted].compactMap(\.self) {
                if let match = policy.pins.match(in: chain, position: policy.position) {
                    return accepted(chain: chain, trusted: trusted, pin: match.pin, depth: match.depth)
                }
            }
            return mismatch(.pinMismatch, chain: trusted ?? chain)
        }
    }

    /// Without a verified chain the peer proves only the leaf's key.
    private func byLeafKey() -> Verdict {
        let mayMatch = policy.position == .any || policy.position == .leaf
        guard mayMatch, let pin = policy.pins.pin(for: presented.leaf, depth: 0) else {
            return refused(mayMatch ? .pinMismatch : .contradiction(.positionNeverMatches(policy.position)))
        }
        if let name = checkedName, let failure = presented.leaf.mismatch(with: name, wildcards: WildcardRule(for: name))
        {
            return refused(.trust(failure))
        }
        return accepted(chain: nil, pin: pin, depth: 0)
    }

    // MARK: Verdicts

    private func accepted(
        chain: VerifiedChain?, trusted: VerifiedChain? = nil, pin: Pin? = nil, depth: Int? = nil,
        report: Refusal? = nil
    ) -> Verdict {
        let chains = [chain, trusted].compactMap(\.self)
        var ends = chains.flatMap { $0.certificates.map(\.end) }
        if let expiry = policy.expiry, expiry.action == .deny { ends.append(expiry.date) }
        if report != nil, let end = policy.rollout?.end(at: time) { ends.append(end) }
        if let lists = policy.requirements.revocationLists {
            ends += chains.compactMap { lists.end(for: $0, at: time) }
        }
        return Verdict(
            outcome: .accepted, host: host, chain: chain, trustedChain: trusted, presented: presented,
            matchedPin: pin, matchedDepth: depth, report: report, validUntil: ends.min() ?? .max)
    }

    private func refused(_ reason: Refusal.Reason, chain: VerifiedChain? = nil) -> Verdict {
        Verdict(
            outcome: .refused(refusal(reason, chain)), host: host, chain: chain, trustedChain: nil,
            presented: presented, matchedPin: nil, matchedDepth: nil, report: nil, validUntil: .min)
    }

    /// The pins don't match. Only reported if the policy says so and the chain is trusted.
    private func mismatch(_ reason: Refusal.Reason, chain: VerifiedChain?) -> Verdict {
        guard policy.enforcement(at: time) == .report, !policy.allowsInvalidCertificates else {
            return refused(reason, chain: chain)
        }
        return accepted(chain: chain, trusted: chain, report: refusal(reason, chain))
    }

    private func refusal(_ reason: Refusal.Reason, _ chain: VerifiedChain?) -> Refusal {
        Refusal(reason: reason, host: host, policy: policy, chain: chain, presented: presented)
    }
}
