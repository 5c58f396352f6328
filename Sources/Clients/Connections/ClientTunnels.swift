import PinproxyEventLoop
import PinproxyRecords
import PinproxySession
import PinproxyTransport

/// Tunnels, verified or not: bytes are carried unread.
extension ClientConnection {
    func verify() {
        guard let route = tunnel?.route, let upstream = takeKept() else { return server.abort() }
        server.setDeadline(afterNanoseconds: handshakeNanoseconds)
        let verification = VerifiedTunnel(
            worker: worker, route: route, requester: { [weak self] in self.map { Requester($0.record) } },
            downstream: server.stream,
            upstream: upstream, received: server.requests.takeBuffer()
        ) { [weak self] ending in self?.arrived(.judged(ending)) }
        carrier = .verifying(verification)
        verification.start()
    }

    func tunnelEnded(_ ending: VerifiedTunnel.Ending) -> ConnectionState.TunnelRuling {
        guard case .verifying(let verification) = carrier else { return .failed }
        carrier = .none
        server.clearDeadline()
        record.tunnelBegan(up: verification.bytesUp, down: verification.bytesDown)
        switch ending {
        case .verified(let verdict):
            record.tunnelVerdict = verdict?.verdict
            record.verification = verdict?.check.rawValue
            carry(
                verification.upstream,
                as: Relayed(
                    tunnel: verification.route, address: verification.upstream.address, verdict: verdict?.verdict),
                received: verification.takeFromClient(), answered: verification.takeFromServer())
            return .verified
        case .refused(let bytes, let refusal):
            server.stream.owner = server
            run?.refused(refusal.cause, asking: record.authority)
            noteFailure(refusal)
            tunnel?.alert = bytes
            return .refused
        case .failed(let refusal):
            noteFailure(refusal)
            return .failed
        }
    }

    private func noteFailure(_ refusal: TunnelRefusal) {
        record.failed(
            refusal.cause, errorType: refusal.errorType, isPinFailure: refusal.isPinFailure, contact: refusal.contact)
    }

    /// - Parameters:
    ///   - received: the client's first bytes.
    ///   - answered: the origin's first bytes.
    func carry(
        _ upstream: UpstreamConnection, as relayed: Relayed, received: consuming ByteBuffer,
        answered: consuming ByteBuffer
    ) {
        let relay = Relay(
            loop: worker.loop, downstream: server.stream, upstream: upstream.stream, received: received,
            answered: answered,
            idleNanoseconds: relayed.timeout?.nanoseconds ?? worker.serverSettings.idleNanoseconds
        ) { [weak self] ending in
            guard let self, case .relaying(let relay, _) = carrier else { return }
            record.relayEnded(ending, up: relay.bytesUp, down: relay.bytesDown)
            worker.session.complete(&record)
            server.leave()
        }
        relay.limitSilence(by: relayed.timeout)
        carrier = .relaying(relay, relayed)
    }

    func relay() {
        handshakeEnded()
        server.clearDeadline()
        // A tunnel that isn't verified begins here.
        if case .none = carrier, let route = tunnel?.route, let upstream = takeKept() {
            carry(
                upstream, as: Relayed(tunnel: route, address: upstream.address, verdict: nil),
                received: server.requests.takeBuffer(), answered: upstream.responses.takeBuffer())
        }
        guard case .relaying(let relay, _) = carrier else { return server.abort() }
        reviewRelay()
        guard state.phase == .relaying else { return }
        relay.start()
        if worker.isDraining { drain(relay) }
    }

    /// CONNECT was answered: its refusal is a TLS alert.
    func alert() {
        handshakeEnded()
        if let error = tunnel?.refusal {
            request.refused(error)
            record.failed(
                error.cause, errorType: error.proxyStatusError, isPinFailure: error.report.isPinFailure,
                contact: error.contact)
        }
        worker.session.complete(&record)
        server.answer(tunnel?.alert ?? TunnelAlert.handshakeFailure.record, then: .linger)
    }
}
