import PinproxyConfiguration
import PinproxyHTTPWire
import PinproxySecurity
import PinproxySession
import PinproxyTLS

extension VerifiedTunnel {
    private typealias Judge = (policy: SecurityPolicy, anchors: TrustAnchors, name: ServerName)
    /// Called when the policy accepts.
    typealias Accepted = (VerifiedTunnel, TunnelVerdict?) -> Void

    /// By the configuration in force after a reload. Nil: the host is no longer verified, or no longer tunnelled.
    private func judge(of version: TLSVersion?, accepted: Accepted) -> Judge? {
        if route.snapshot !== worker.snapshot {
            guard case .tunnel(let fresh) = worker.decide(route.authority, for: .secure, client: route.client) else {
                refuse(.handshakeFailure, "after a reload this host may no longer be tunnelled", "http_request_denied")
                return nil
            }
            route = fresh
        }
        guard case .verifiedTunnel(let policy, let anchors, let name) = route.target.layer else {
            accepted(self, nil)
            return nil
        }
        let minimum = max(policy.requirements.minimumTLS, .tls12)
        guard let version, version >= minimum else {
            let chosen = version.map { "\($0)" } ?? "an unknown version"
            refuse(.protocolVersion, "the origin chose \(chosen), and at least \(minimum) is required", Self.tlsError)
            return nil
        }
        return (policy, anchors, name)
    }

    /// - Parameter accepted: called at once if the policy accepts the certificates.
    func judge(_ shown: ServerCertificates, accepted: Accepted) {
        guard let judge = judge(of: wireVersion(shown.version), accepted: accepted) else { return }
        // Made of an origin that is refused or reported only, and once.
        lazy var contact = upstream.contact(
            wireVersion(shown.version).map { NegotiatedTLS(version: $0, suite: shown.cipherSuite) })
        let presented: PresentedChain
        do {
            presented = try PresentedChain(der: shown.certificates)
        } catch {
            return distrust(.badCertificate, .inBand, "the origin's certificate can't be read: \(error)", contact)
        }
        let now = worker.unixTime()
        var verdict = judge.policy.evaluate(presented, host: judge.name, anchors: judge.anchors, at: now)
        if verdict.isAccepted {
            verdict = judge.policy.confirm(verdict, with: evidence(beside: shown, leaf: presented.leaf), at: now)
        }
        // Before the chain is counted or recorded: without this proof it could be a copy.
        if verdict.isAccepted, let fault = proofFault(of: shown, leaf: presented.leaf) {
            return distrust(.decryptError, .inBand, fault, contact, presented: presented)
        }
        worker.report(verdict, judged(.inBand), contact)
        if let refusal = verdict.refusal {
            worker.session.connector.forget(route.target, after: refusal)
            return refuse(refusal, contact)
        }
        accepted(self, TunnelVerdict(verdict: verdict, check: .inBand))
    }

    /// Nil: the origin's signature proves that it holds the certificate's key. Not every client checks that.
    private func proofFault(of shown: ServerCertificates, leaf: Certificate) -> String? {
        guard let hello else { return "there was no ClientHello" }
        do {
            let exchange = try ServerKeyExchange(shown, clientRandom: hello.random)
            try leaf.publicKey.verify(exchange.signature, of: exchange.signed, scheme: exchange.scheme)
            return nil
        } catch ServerKeyExchange.Fault.unsigned {
            let suite = String(shown.cipherSuite, radix: 16, uppercase: true)
            return "the origin chose cipher suite 0x\(suite), in which it doesn't sign the key exchange and so proves "
                + "nothing before the client has answered: offer suites with ECDHE in the client"
        } catch ServerKeyExchange.Fault.malformed {
            return "the origin sent a ServerKeyExchange that is missing or malformed"
        } catch {
            return "the origin didn't prove that it holds its certificate's key: \(error)"
        }
    }

    /// Sent with the certificates, or else (not every client asks for it) to a probe.
    private func evidence(beside shown: ServerCertificates, leaf: Certificate) -> PeerEvidence {
        let probed = worker.session.connector.evidence(about: leaf, for: route.target, at: upstream.address)
        return PeerEvidence(
            ocspResponse: shown.ocspResponse ?? probed.ocspResponse,
            timestamps: shown.timestamps.isEmpty ? probed.timestamps : shown.timestamps)
    }

    /// Judges by a probe that offers the client's protocols.
    /// - Parameter accepted: called on the loop after an accepted probe, or at once if none is needed.
    func judgeByProbe(version: TLSVersion?, accepted: @escaping Accepted) {
        guard judge(of: version, accepted: accepted) != nil else { return }
        probe = worker.session.connector.probe(
            route.target, at: upstream.address, applicationProtocols: hello?.applicationProtocols ?? [],
            timeouts: worker.snapshot.timeouts
        ) { [weak self] outcome in
            guard let self else { return }
            probe = nil
            worker.report(outcome, of: route, for: judged(.probe).requester)
            switch outcome {
            case .found(let finding, _): judge(finding, version: version, accepted: accepted)
            case .failed(.refused(let verdict, let contact)):
                guard let refusal = verdict.refusal else { return refuse(.internalError, "no verdict", Self.tlsError) }
                refuse(refusal, contact)
            case .failed(let failure):
                let error = ProxyError.upstream(failure, route.authority, route.destination.source)
                refuse(.internalError, "the probe failed: \(error.cause)", error.proxyStatusError, failure.contact)
            }
        }
    }

    /// The origin must speak TLS 1.3 with the probe, too.
    private func judge(_ finding: ProbeFinding, version: TLSVersion?, accepted: Accepted) {
        guard version != .tls13 || finding.version == .tls13 else {
            return distrust(
                .handshakeFailure, .probe,
                "the origin used \(finding.version) with the probe, and TLS 1.3 with the client", upstream.contact(),
                presented: finding.verdict.presented)
        }
        accepted(self, TunnelVerdict(verdict: finding.verdict, check: .probe))
    }

    /// Nil: SSL 3.0 or unknown.
    func wireVersion(_ version: UInt16) -> TLSVersion? {
        switch version {
        case 0x0301: .tls10
        case 0x0302: .tls11
        case 0x0303: .tls12
        default: nil
        }
    }

    private func distrust(
        _ alert: TunnelAlert, _ check: TunnelVerdict.Check, _ cause: String, _ contact: OriginContact,
        presented: PresentedChain? = nil
    ) {
        worker.session.connector.forget(route.target, after: nil)
        worker.reportDistrust(cause, judged(check), contact, presented: presented)
        refuse(alert, cause, "tls_certificate_error", contact)
    }
}
