import Configuration
import EventLoop
import Security
import Session
import Transport

/// CONNECT to a host whose tunnels are verified: the policy judges before success is promised, and once
/// more when the handshake passes by.
extension ClientConnection {
    /// Has the origin judged over the connection that was made for the tunnel, unless it was a moment ago;
    /// the tunnel then gets another one to the same address. One after the other, so that an origin that
    /// serves few connections at a time is not asked for two.
    func probe(_ route: Route, over upstream: UpstreamConnection) {
        probe = worker.connector.probe(
            route.target, at: upstream.address, over: upstream, applicationProtocols: nil,
            timeouts: worker.snapshot.timeouts
        ) { [unowned self] outcome in
            probe = nil
            worker.report(outcome, of: route)
            switch outcome {
            case .found(_, isFresh: false):
                leased = upstream
                answerConnect(route)
            case .found(_, isFresh: true): dial(route, at: upstream.address)
            case .failed(let failure): refuseConnect(failure, route)
            }
        }
    }

    func verify(_ upstream: UpstreamConnection, for route: Route) {
        phase = .verifying
        deadline.set(afterNanoseconds: worker.snapshot.timeouts.tlsHandshake.nanoseconds)
        let verification = VerifiedTunnel(
            worker: worker, route: route, downstream: stream, upstream: upstream, received: requests.takeBuffer()
        ) { [unowned self] ending in verified(upstream, ending) }
        self.verification = verification
        verification.start()
    }

    private func verified(_ upstream: UpstreamConnection, _ ending: VerifiedTunnel.Ending) {
        guard let verification else { return }
        self.verification = nil
        deadline.clear()
        exchange.record.tunnelBegan(up: verification.bytesUp, down: verification.bytesDown)
        switch ending {
        case .verified(let verdict):
            exchange.record.verdict = verdict
            relay(
                with: upstream, record: exchange.record, received: verification.takeFromClient(),
                answered: verification.takeFromServer())
        case .refused(let bytes, let refusal):
            stream.owner = self
            exchange.record.failed(refusal)
            worker.log(&exchange.record, of: self)
            say(bytes, then: .linger)
        case .failed(let refusal):
            exchange.record.failed(refusal)
            worker.log(&exchange.record, of: self)
            close()
        }
    }
}
