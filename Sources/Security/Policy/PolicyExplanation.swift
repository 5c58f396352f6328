package import PinproxyTLS

extension SecurityPolicy {
    /// Judges a server's chain as ``evaluate(_:host:anchors:at:)`` does, and explains all checks.
    /// - Parameters:
    ///   - evidence: what the server sent beside its chain, if one was asked.
    ///   - version: the negotiated TLS version.
    package func explain(
        _ presented: PresentedChain, evidence: PeerEvidence? = nil, version: TLSVersion? = nil, host: ServerName?,
        anchors: TrustAnchors, at time: UnixTime
    ) -> Explanation {
        var verdict = evaluate(presented, host: host, anchors: anchors, at: time)
        if let evidence { verdict = confirm(verdict, with: evidence, at: time) }
        let checks = Explainer(
            policy: self, verdict: verdict, presented: presented, version: version, host: host, anchors: anchors,
            time: time
        ).checks()
        return Explanation(verdict: verdict, checks: checks)
    }
}

private struct Explainer {
    let policy: SecurityPolicy
    let verdict: Verdict
    let presented: PresentedChain
    let version: TLSVersion?
    let host: ServerName?
    let anchors: TrustAnchors
    let time: UnixTime

    func checks() -> [Check] {
        if let contradiction = settings() { return [contradiction] }
        var checks: [Check] = []
        if let expiry = policy.expiry { checks.append(self.expiry(expiry)) }
        if let rollout = policy.rollout {
            checks.append(Check(.enforcement, .passed, "\(rollout.text(at: time)); today is \(CalendarDate(time))"))
        }
        checks.append(tls())
        let trusted =
            policy.allowsInvalidCertificates
            ? nil : policy.verify(presented, to: anchors, name: nameInCertificate, time: time)
        checks.append(chain(trusted))
        checks.append(name())
        checks.append(dates(trusted))
        checks.append(lifetime(trusted))
        checks.append(revocation(trusted))
        if policy.mode == .certificate { checks.append(pinnedAnchors(trusted)) }
        checks.append(pins(trusted))
        checks.append(ocsp())
        checks.append(transparency())
        return checks
    }

    // MARK: Other requirements

    private func revocation(_ trusted: Result<VerifiedChain, VerificationFailure>?) -> Check {
        guard let lists = policy.requirements.revocationLists, !lists.isEmpty else {
            return Check(.revocation, .skipped, "crl_files is not set")
        }
        if case .failure(let failure)? = trusted, failure.reason == .revoked || failure.reason == .revocationUnknown {
            return Check(.revocation, .failed, [failure.message] + lists.terms.map(line))
        }
        guard let chain = trusted.map({ try? $0.get() }) ?? verdict.chain else {
            return Check(.revocation, .skipped, "no chain was verified")
        }
        let unlisted =
            chain.unlistedIssuers.map { "no list for \(subject($0)): its certificates are not checked" }
            + lists.strangers(to: chain).map {
                "\($0.path): this list of \($0.issuer) is not signed by the key of \($0.issuer) in the chain, "
                    + "so it doesn't count"
            }
        if chain.isUnlisted {
            return Check(
                .revocation, .skipped, ["no list of crl_files is for the chain, so nothing was checked"] + unlisted)
        }
        let judges = lists.terms(for: chain, at: time).map(line)
        return Check(.revocation, .passed, ["no certificate of the chain is on its issuer's list"] + judges + unlisted)
    }

    private func line(_ term: RevocationListTerm) -> String {
        let distance = TimeDistance(from: time, to: term.nextUpdate)
        return
            """
            \(term.path): list of \(term.issuer), \(distance.isPast ? "expired" : "valid until") \
            \(CalendarDate(term.nextUpdate)), \(distance)
            """
    }

    /// The chain that the evidence is about, if the verdict reached it.
    private var confirmed: VerifiedChain? {
        switch verdict.refusal?.reason {
        case nil, .status?, .transparency?: verdict.trustedChain ?? verdict.chain
        default: nil
        }
    }

    private func ocsp() -> Check {
        if policy.requirements.stapling == .ignore {
            return Check(.ocsp, .skipped, "ocsp is ignore: no response is requested")
        }
        guard let chain = confirmed else {
            return Check(.ocsp, .skipped, "the chain was not accepted, so its OCSP response was not checked")
        }
        guard let evidence = verdict.evidence else {
            return Check(.ocsp, .skipped, "a chain on disk brings no stapled response")
        }
        return switch policy.status(of: chain, evidence, at: time) {
        case .success(let status?): Check(.ocsp, .passed, "the stapled response: \(status)")
        case .success(nil): Check(.ocsp, .passed, "the server staples no response, and none is required")
        case .failure(let failure): Check(.ocsp, .failed, "\(failure)")
        }
    }

    private func transparency() -> Check {
        guard let chain = confirmed else {
            return Check(.transparency, .skipped, "the chain was not accepted, so its timestamps were not checked")
        }
        switch policy.transparency(of: chain, verdict.evidence, at: time) {
        case nil: return Check(.transparency, .skipped, "ct_log_list is not set")
        case .success(let result)?:
            return Check(.transparency, .passed, ["\(result):"] + result.timestamps.map(\.description))
        case .failure(let failure)?:
            let lines = ["\(failure):"] + failure.result.timestamps.map(\.description)
            if case .status? = verdict.refusal?.reason { return Check(.transparency, .skipped, lines) }
            return verdict.evidence == nil
                ? Check(.transparency, .skipped, lines + ["a server could bring more in its handshake"])
                : Check(.transparency, .failed, lines)
        }
    }

    // MARK: Settings

    private func settings() -> Check? {
        if case .refused(let refusal) = verdict.outcome, case .contradiction(let contradiction) = refusal.reason {
            return Check(.settings, .failed, "\(contradiction)")
        }
        return nil
    }

    private func expiry(_ expiry: PinExpiry) -> Check {
        let date = CalendarDate(expiry.date)
        let action = "on_expiry: \(expiry.action.rawValue)"
        guard expiry.hasPassed(at: time) else {
            return Check(.expiry, .passed, "the pins expire \(date) (\(action)); today is \(CalendarDate(time))")
        }
        let text = "the pins expired \(date); today is \(CalendarDate(time)); \(action)"
        return switch expiry.action {
        case .enforce: Check(.expiry, .passed, "\(text), so they are enforced as before")
        case .report: Check(.expiry, .passed, "\(text), so a pin that doesn't match is only reported")
        case .deny: Check(.expiry, .failed, "\(text), so the host is refused")
        }
    }

    /// A server without a new enough version fails in its handshake, before its chain.
    private func tls() -> Check {
        let asked = "min_tls: \(policy.requirements.minimumTLS)"
        return version.map { Check(.tls, .passed, "\($0) was negotiated; \(asked)") }
            ?? Check(.tls, .skipped, "no TLS handshake was completed; \(asked)")
    }

    // MARK: Trust

    private func chain(_ trusted: Result<VerifiedChain, VerificationFailure>?) -> Check {
        switch trusted {
        case nil:
            Check(.anchors, .skipped, "allow_invalid_certificates is true: the trust anchors are not asked")
        case .success(let chain):
            Check(
                .anchors, .passed,
                ["the chain leads to a trust anchor:"]
                    + chain.certificates.enumerated().map { depth, certificate in
                        "\(role(depth, in: chain)): \(text(certificate))"
                    })
        case .failure(let failure):
            Check(
                .anchors, .failed,
                ["no chain to one of the \(anchors.certificates.count) trust anchors: \(failure.message)"]
                    + presented.certificates.prefix(Self.shown).enumerated().map { index, certificate in
                        "sent \(index + 1): \(text(certificate)), issued by \(certificate.issuer)"
                    })
        }
    }

    /// The name, if the leaf has it; a mismatch is a separate check.
    private var nameInCertificate: ServerName? {
        guard policy.validatesDomainName, let host else { return nil }
        return mismatch(with: host) == nil ? host : nil
    }

    private func mismatch(with name: ServerName) -> VerificationFailure? {
        presented.leaf.mismatch(with: name, wildcards: WildcardRule(for: name))
    }

    private func name() -> Check {
        guard let host else { return Check(.name, .skipped, "there is no name to compare") }
        let names = presented.leaf.dnsNames + presented.leaf.ipAddresses
        let listed = names.isEmpty ? "no name" : names.prefix(Self.shown).joined(separator: ", ")
        let more = names.count > Self.shown ? " and \(names.count - Self.shown) more" : ""
        let compared = "\(host) against the certificate's \(listed)\(more)"
        guard policy.validatesDomainName else {
            return Check(.name, .skipped, "validates_domain_name is false: not compared: \(compared)")
        }
        guard let failure = mismatch(with: host) else { return Check(.name, .passed, compared) }
        if case .refused = WildcardRule(for: host) { return Check(.name, .failed, [compared, failure.message]) }
        return Check(.name, .failed, compared)
    }

    private func dates(_ trusted: Result<VerifiedChain, VerificationFailure>?) -> Check {
        let chain = (try? trusted?.get()) ?? verdict.chain
        if chain == nil, policy.mode == .publicKey, policy.allowsInvalidCertificates {
            return Check(.dates, .skipped, "allow_invalid_certificates is true: dates are not checked")
        }
        let certificates = chain?.certificates ?? presented.certificates
        let lines = certificates.prefix(Self.shown).map { certificate in
            "\(CalendarDate(certificate.notBefore)) to \(CalendarDate(certificate.notAfter)): \(subject(certificate))"
        }
        let isWrong = chain == nil && certificates.contains { !$0.isValid(at: time) }
        let outcome: Check.Outcome =
            chain != nil ? .passed : !isWrong || verdict.isAccepted ? .skipped : .failed
        return Check(.dates, outcome, ["\(CalendarDate(time)) against the validity of each certificate:"] + lines)
    }

    private func lifetime(_ trusted: Result<VerifiedChain, VerificationFailure>?) -> Check {
        // The difference of malformed dates may overflow.
        let (difference, overflow) = presented.leaf.notAfter.subtractingReportingOverflow(presented.leaf.notBefore)
        let time = overflow ? "a time that can't be read" : "\(Count(Int(difference / 86_400 + 1), "day"))"
        guard let maximum = policy.requirements.maximumLeafLifetime else {
            return Check(.lifetime, .skipped, "max_leaf_lifetime is not set; the leaf is valid for \(time)")
        }
        guard !policy.allowsInvalidCertificates || policy.mode == .certificate else {
            return Check(.lifetime, .skipped, "no chain is verified")
        }
        let isShort = !overflow && difference < maximum
        return Check(
            .lifetime, isShort ? .passed : .failed,
            "the leaf is valid for \(time); max_leaf_lifetime allows \(Count(Int(maximum / 86_400), "day"))")
    }

    // MARK: Pins

    private func pinnedAnchors(_ trusted: Result<VerifiedChain, VerificationFailure>?) -> Check {
        let result = policy.verifyToPins(
            presented, trusted: try? trusted?.get(), anchors: anchors, name: nameInCertificate, time: time)
        return switch result {
        case .success(let chain):
            Check(.pinnedAnchors, .passed, "the pinned certificates alone vouch for it: \(text(chain.anchor))")
        case .failure(let failure):
            Check(
                .pinnedAnchors, failed, "the pinned certificates alone do not vouch for it: \(failure.message)")
        }
    }

    private var failed: Check.Outcome { verdict.report == nil ? .failed : .reported }

    private func pins(_ trusted: Result<VerifiedChain, VerificationFailure>?) -> Check {
        guard policy.mode != .none else { return Check(.pins, .skipped, "pinning is none: no pins are compared") }
        let chain = verdict.chain ?? (try? trusted?.get())
        let onlyLeaf = policy.mode == .publicKey && policy.allowsInvalidCertificates
        guard chain != nil || onlyLeaf else {
            return Check(.pins, .skipped, "no chain was verified, and pins are compared with no other")
        }
        let place = policy.position == .any ? "" : " (position: \(policy.position.rawValue))"
        let head = onlyLeaf ? "each pin against the leaf's key" : "each pin against the verified chain\(place)"
        let lines = policy.pins.pins.map { pin in "\(written(pin)): \(result(of: pin, in: chain))" }
        let isMatched = verdict.matchedPin != nil
        let outcome: Check.Outcome =
            isMatched ? .passed : verdict.report != nil ? .reported : isPinsFault ? .failed : .skipped
        return Check(.pins, outcome, ["\(head):"] + lines)
    }

    /// False if another check refused first.
    private var isPinsFault: Bool {
        if case .pinMismatch? = verdict.refusal?.reason { true } else { false }
    }

    /// - Parameter chain: nil: only the leaf counts.
    private func result(of pin: Pin, in chain: VerifiedChain?) -> String {
        guard let chain else {
            let isMet = PinSet([pin]).pin(for: presented.leaf, depth: 0) != nil
            return isMet ? "matches the leaf (\(subject(presented.leaf)))" : "not the leaf's"
        }
        return switch policy.place(of: pin, in: chain) {
        case .absent: "not in the chain"
        case .matches(let depth): "matches the \(role(depth, in: chain)) (\(subject(chain.certificates[depth])))"
        case .ruledOut(let depth):
            "is the \(role(depth, in: chain))'s, where position: \(policy.position.rawValue) does not allow it to match"
        }
    }

    private func written(_ pin: Pin) -> String {
        pin.origin == pin.description ? "\(pin)" : "\(pin) (\(pin.origin))"
    }

    // MARK: Texts

    private static let shown = 10

    private func role(_ depth: Int, in chain: VerifiedChain) -> String {
        if depth == 0 { return "leaf" }
        return depth == chain.certificates.count - 1 ? "anchor" : "issuer"
    }

    private func subject(_ certificate: Certificate) -> String {
        certificate.subject.isEmpty ? "no subject" : certificate.subject
    }

    private func text(_ certificate: Certificate) -> String {
        "\(subject(certificate)), \(certificate.keyDescription), sha256/\(certificate.spkiSHA256.base64)"
    }
}
