package import PinproxyEventLoop
import PinproxySecurity
import PinproxyTLS
package import PinproxyTransport

/// Judges a tunnel's origin by a handshake of the proxy's own: same address, port, SNI and parent proxy. It is always
/// full, to get a chain. An origin that demands a client certificate fails it after presenting its own, which still
/// gives a finding, with whether the key was proved.
package final class UpstreamProbe: ByteStreamOwner {
    package enum Outcome {
        /// The policy accepts. Not fresh: found within the last minute.
        case found(ProbeFinding, isFresh: Bool)
        case failed(UpstreamFailure)
    }

    /// Offered where the client hasn't spoken yet, as web clients do.
    private static let usualProtocols = ["h2", "http/1.1"]

    private let connector: UpstreamConnector
    private let target: UpstreamTarget
    private let address: SocketAddress
    private let applicationProtocols: [String]?
    private let timeouts: Timeouts
    private var completion: ((Outcome) -> Void)?

    /// Used for the handshake unless the cache answers.
    private var given: UpstreamConnection?
    private var attempt: UpstreamAttempt?
    private var connection: UpstreamConnection?
    private var verdict: Verdict?
    private lazy var deadline = Deadline(loop: connector.loop, owner: self) { $0.end(.failed(.timedOut(.tls))) }

    init(
        connector: UpstreamConnector, target: UpstreamTarget, address: SocketAddress,
        over connection: UpstreamConnection?, applicationProtocols: [String]?, timeouts: Timeouts,
        completion: @escaping (Outcome) -> Void
    ) {
        self.connector = connector
        self.target = target
        self.address = address
        given = connection
        self.applicationProtocols = applicationProtocols
        self.timeouts = timeouts
        self.completion = completion
    }

    package func cancel() {
        completion = nil
        release()
    }

    func start() {
        guard completion != nil, let place = target.probePlace(at: address) else { return }
        if let finding = connector.probes.finding(
            for: place, applicationProtocols: applicationProtocols, at: connector.unixTime())
        {
            return end(.found(finding, isFresh: false))
        }
        if let given {
            connection = given
            return shakeHands(over: given.stream)
        }
        attempt = connector.connect(to: target, at: address, timeouts: timeouts) { [weak self] result in
            guard let self else { return }
            attempt = nil
            switch result {
            case .success(let connection):
                self.connection = connection
                shakeHands(over: connection.stream)
            case .failure(let failure): end(.failed(failure))
            }
        }
    }

    private func shakeHands(over stream: ByteStream) {
        guard case .verifiedTunnel(let policy, let anchors, let name) = target.layer else { return }
        stream.owner = self
        deadline.set(afterNanoseconds: timeouts.tlsHandshake.nanoseconds)
        let now = connector.unixTime()
        do {
            var options = TLSClientContext.Options(for: policy.requirements)
            options.applicationProtocols = applicationProtocols ?? Self.usualProtocols
            let context = try TLSClientContext(options: options)
            let connection = try stream.withDescriptor { descriptor in
                try TLSConnection(
                    client: context, descriptor: descriptor, serverName: name,
                    verify: { [weak self] presented in
                        guard let self else { return .reject(x509Code: 0) }
                        let verdict = policy.evaluate(presented, host: name, anchors: anchors, at: now)
                        self.verdict = verdict
                        return verdict.peerVerdict
                    },
                    confirm: { [weak self] evidence in
                        guard let self else { return .reject(x509Code: 0) }
                        verdict = verdict.map { policy.confirm($0, with: evidence, at: now) }
                        return verdict?.peerVerdict ?? .reject(x509Code: 0)
                    })
            }
            stream.secure(connection)
        } catch {
            end(.failed(.local("\(error)")))
        }
    }

    package func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {
        guard case .verifiedTunnel(let policy, _, _) = target.layer else { return }
        guard var verdict else {
            if case .failure(let error) = result { return fail(.tls(error, nil)) }
            return end(.failed(.local("the handshake ended without a verdict")))
        }
        guard verdict.isAccepted else { return fail(.refused(verdict, nil)) }
        // The handshake may have delayed the timer.
        if deadline.isOverdue { return end(.failed(.timedOut(.tls))) }
        if case .failure(let error) = result {
            guard case .tls(let cause) = error, case .alertReceived = cause.kind else {
                return fail(.tls(error, nil))
            }
            // A chain without proof of its key could be a copy.
            guard stream.withTLS({ $0.isServerKeyProved }) == true else { return fail(.tls(error, nil)) }
            if verdict.evidence == nil {
                // It was interrupted without evidence.
                verdict = policy.confirm(verdict, with: PeerEvidence(), at: connector.unixTime())
                guard verdict.isAccepted else { return fail(.refused(verdict, nil)) }
            }
        }
        let version = stream.withTLS { $0.version } ?? .tls12
        let finding = ProbeFinding(verdict: verdict, version: version)
        if let place = target.probePlace(at: address) {
            connector.probes.store(
                finding, for: place, applicationProtocols: applicationProtocols ?? Self.usualProtocols,
                at: connector.unixTime())
        }
        end(.found(finding, isFresh: true))
    }

    package func streamIsReadable(_ stream: ByteStream) {}
    package func streamIsWritable(_ stream: ByteStream) {}

    /// The handshake's failure, with what is known of the connection.
    private func fail(_ failure: UpstreamFailure) { end(.failed(failure.met(connection?.contact()))) }

    private func end(_ outcome: Outcome) {
        guard let completion else { return }
        self.completion = nil
        release()
        if case .failed(.refused(let verdict, _)) = outcome { connector.forget(target, after: verdict.refusal) }
        completion(outcome)
    }

    private func release() {
        deadline.clear()
        attempt?.cancel()
        attempt = nil
        connection?.close()
        connection = nil
        given = nil
    }
}

extension UpstreamConnector {
    /// Has the policy of a ``UpstreamTarget/Layer/verifiedTunnel(_:_:_:)`` judge the origin at `address`, or takes the
    /// cached verdict.
    /// - Parameters:
    ///   - address: the tunnel's peer: the origin or the parent proxy.
    ///   - connection: to use for the probe, untouched if the cache answers; nil: dial one.
    ///   - applicationProtocols: what the client offers, if known.
    ///   - completion: called once on the loop, after this returns, never after ``UpstreamProbe/cancel()``.
    package func probe(
        _ target: UpstreamTarget, at address: SocketAddress, over connection: UpstreamConnection? = nil,
        applicationProtocols: [String]?, timeouts: Timeouts, completion: @escaping (UpstreamProbe.Outcome) -> Void
    ) -> UpstreamProbe {
        let probe = UpstreamProbe(
            connector: self, target: target, address: address, over: connection,
            applicationProtocols: applicationProtocols, timeouts: timeouts, completion: completion)
        loop.afterThisTurn { probe.start() }
        return probe
    }
}
