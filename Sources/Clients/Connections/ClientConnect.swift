import Configuration
import EventLoop
import HTTPWire
import Records
import Security
import Session
import TLS
package import Transport

/// CONNECT: the upstream first, then the answer, then TLS with a minted leaf, or a tunnel.
extension ClientConnection {
    /// - Parameter overtaken: the attempt before this one, which a reload overtook.
    func connect(_ route: Route, inPlaceOf overtaken: ConnectAttempt? = nil) {
        record.entry = route.destination.source?.pattern
        record.entrySlot = route.slot
        record.kind = route.target.key.layer.isShared ? .interception : .tunnel
        worker.session.begin(&record)
        server.dropHead()
        if let refusal = refusalWithoutAuthority(route) { return server.refuseRequest(refusal) }
        guard let attempt = ConnectAttempt(route, worker: worker, inPlaceOf: overtaken) else {
            return server.refuseRequest(.overtaken(host: route.authority.host))
        }
        state = .connecting(attempt)
        boundConnecting()
        // Strong: the attempt drops the closure when it has called it, and when closed(_:) cancels it. Weak would cost
        // two allocations.
        attempt.start { self.connected($0) }
    }

    private func connected(_ result: Result<UpstreamConnection, UpstreamFailure>) {
        if holdsBack({ $0.connected(result) }) { return }
        guard case .connecting(let attempt) = state else { return }
        let route = attempt.route
        switch result {
        case .success(let upstream) where upstream.origin.isRetired:
            upstream.close()
            connectAnew(inPlaceOf: attempt)
        case .success(let upstream): promise(route, upstream)
        case .failure(let failure):
            if obtainPlain(after: failure, of: attempt) { return }
            connectFailed(failure, by: route)
        }
    }

    func connectFailed(_ failure: UpstreamFailure, by route: Route) {
        let error = ProxyError.exchange(.unreachable(failure), route.destination)
        if route.entry?.showsRefusals == true, failure.isRefusalOfOrigin, refusalWithoutAuthority(route) == nil {
            return promiseRefusal(error, route)
        }
        state = .open
        server.refuseRequest(error)
    }

    /// The refusal once the local authority has expired: after a 200 the client could only be cut off.
    private func refusalWithoutAuthority(_ route: Route) -> ProxyError? {
        guard route.target.key.layer.isShared else { return nil }
        let now = worker.unixTime()
        let end = worker.configuration.leaves.authorities.signer(at: now).end
        return now > end ? .authorityExpired(end, host: route.authority.host) : nil
    }

    func promise(_ route: Route, _ upstream: UpstreamConnection) {
        if let refusal = refusalWithoutAuthority(route) {
            upstream.close()
            state = .open
            return server.refuseRequest(refusal)
        }
        record.connected(upstream, at: worker.loop.now)
        state = .promised(route, upstream)
        if route.target.key.layer.isShared { upstream.hold() }
        handshakeBegan()
        server.answer(Self.established, then: .handOver)
    }

    /// The client is told inside its TLS, where a person in a browser can read it. Nothing that it sends goes anywhere.
    private func promiseRefusal(_ error: ProxyError, _ route: Route) {
        worker.reportPage(error, of: route, client: source)
        refused(error)
        refusalInside = error
        state = .promisedRefusal(route)
        handshakeBegan()
        server.answer(Self.established, then: .handOver)
    }

    /// A reload came while the connection was made. The configuration in force would have made another one, or none.
    func connectAnew(inPlaceOf overtaken: ConnectAttempt) {
        if worker.isDraining { return refuseToConnect(overtaken) }
        state = .open
        if let objectionAfterReload { return server.refuseRequest(objectionAfterReload) }
        let old = overtaken.route
        let authority = (asked ?? old.authority).canonical
        if awaitsPeer(for: authority) {
            // Not identify(then:), which may read the request again: the server has dropped its head.
            keepRequest { $0.connectAnew(inPlaceOf: overtaken) }
            return askForDecision()
        }
        switch worker.decide(authority, for: .secure, client: client(as: old.client)) {
        case .refuse(let error): server.refuseRequest(error)
        case .relay(let route), .tunnel(let route): connect(beforeItSpeaks(route), inPlaceOf: overtaken)
        }
    }

    private static let established = Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)

    package func handedOver(by server: HTTP1Server) {
        if holdsBack({ $0.handedOver(by: $0.server) }) { return }
        if case .promisedRefusal(let route) = state { return beginSecuring(route) }
        guard case .promised(let route, let upstream) = state else { return server.abort() }
        if !upstream.origin.key.layer.isShared, upstream.origin.isRetired {
            state = .open
            upstream.close()
            return fail("after a reload this host is no longer connected to in this way")
        }
        switch route.target.layer {
        case .plain, .tls:
            hold(upstream)
            beginSecuring(route)
        case .tunnel:
            relay(
                with: upstream, as: Relayed(tunnel: route, address: upstream.address, verdict: nil),
                received: server.requests.takeBuffer(), answered: upstream.responses.takeBuffer())
        case .verifiedTunnel:
            verify(upstream, for: route)
        }
    }

    // MARK: Interception

    func beginSecuring(_ route: Route) {
        server.setDeadline(afterNanoseconds: handshakeNanoseconds)
        do {
            // Minted, if need be, while the client gets ready to speak.
            let identity = try worker.configuration.leaves.identity(
                for: ServerName(host: (asked ?? route.authority).host), now: worker.unixTime())
            state = .awaitingHandshake(route, identity)
        } catch {
            return fail("no certificate for \(route.authority): \(error)")
        }
        guard server.requests.isEmpty else { return clientSpoke() }
        // From its first step on TLS holds tens of KiB: it begins when the client does.
        server.requests.rest()
        server.stream.wantsRead = true
    }

    /// The client has begun its TLS handshake, or sent what can't be one, or ended.
    func secure() {
        guard case .awaitingHandshake(let route, let identity) = state else { return server.abort() }
        state = .securing(route)
        let early = server.requests.takeReceived()
        do {
            let connection = try server.stream.withDescriptor { descriptor in
                try TLSConnection(
                    server: worker.shared.serverTLS, descriptor: descriptor, identity: identity,
                    ticketContext: SHA256Digest.of(Array((asked ?? route.authority).description.utf8)).bytes,
                    alreadyReceived: early)
            }
            server.stream.secure(connection)
        } catch {
            fail("no certificate for \(route.authority): \(error)")
        }
    }

    package func lentStreamIsReadable(_ server: HTTP1Server) {
        if case .awaitingHandshake = state { clientSpoke() } else { server.stream.wantsRead = false }
    }

    package func secured(_ result: Result<Void, StreamError>) {
        guard case .securing(let route) = state else { return }
        if holdsBack({ $0.secured(result) }) { return }
        switch result {
        case .success:
            if let name = server.stream.withTLS({ $0.clientServerName }) ?? nil, !(asked ?? route.authority).isNamedWithPort(name) {
                handshakeNamed(name)
            }
            worker.counters.countClientHandshake(isResumed: server.stream.withTLS { $0.isResumed } ?? false, at: route.slot)
            handshakeEnded()
            record.status = 200
            if let refusalInside {
                record.failed(
                    refusalInside.cause, errorType: refusalInside.proxyStatusError, isPinFailure: refusalInside.report.isPinFailure)
            }
            worker.session.complete(&record)
            state = .inside(route)
            server.serve()
        case .failure(let error):
            worker.counters.countClientHandshake(isResumed: nil, at: route.slot)
            let cause = "the client's TLS handshake failed: \(error)\(advice(on: error))"
            run?.refused(cause, asking: record.authority)
            fail(cause)
        }
    }

    private func advice(on error: StreamError) -> String {
        guard case .tls(let failure) = error, failure.kind == .noSharedApplicationProtocol else { return "" }
        return "; http/1.1 is what is spoken here (not HTTP/2 yet): offer it too, or let the host pass unopened, its pins still "
            + "verified, with action: verify-tunnel"
    }

    // MARK: Tunnels

    private func verify(_ upstream: UpstreamConnection, for route: Route) {
        server.setDeadline(afterNanoseconds: handshakeNanoseconds)
        let verification = VerifiedTunnel(
            worker: worker, route: route, downstream: server.stream, upstream: upstream,
            received: server.requests.takeBuffer()
        ) { [weak self] ending in self?.verified(upstream, ending) }
        state = .verifying(verification)
        verification.start()
    }

    private func verified(_ upstream: UpstreamConnection, _ ending: VerifiedTunnel.Ending) {
        guard case .verifying(let verification) = state else { return }
        if holdsBack({ $0.verified(upstream, ending) }) { return }
        state = .open
        server.clearDeadline()
        record.tunnelBegan(up: verification.bytesUp, down: verification.bytesDown)
        switch ending {
        case .verified(let verdict):
            record.tunnelVerdict = verdict?.verdict
            record.verification = verdict?.check.rawValue
            relay(
                with: upstream,
                as: Relayed(tunnel: verification.route, address: upstream.address, verdict: verdict?.verdict),
                received: verification.takeFromClient(), answered: verification.takeFromServer())
        case .refused(let bytes, let refusal):
            server.stream.owner = server
            run?.refused(refusal.cause, asking: record.authority)
            record.failed(refusal.cause, errorType: refusal.errorType, isPinFailure: refusal.isPinFailure)
            worker.session.complete(&record)
            server.answer(bytes, then: .linger)
        case .failed(let refusal):
            record.failed(refusal.cause, errorType: refusal.errorType, isPinFailure: refusal.isPinFailure)
            worker.session.complete(&record)
            server.close()
        }
    }

    /// From here on bytes are carried unread: a tunnel, or another protocol after an upgrade.
    /// - Parameters:
    ///   - relayed: by what it was let begin; a reload that came since may object.
    ///   - received: of the client's, to be carried first.
    ///   - answered: of the origin's.
    func relay(
        with upstream: UpstreamConnection, as relayed: Relayed, received: consuming ByteBuffer,
        answered: consuming ByteBuffer
    ) {
        handshakeEnded()
        server.clearDeadline()
        let relay = Relay(
            loop: worker.loop, downstream: server.stream, upstream: upstream.stream,
            received: received, answered: answered,
            idleNanoseconds: relayed.timeout?.nanoseconds ?? worker.serverSettings.idleNanoseconds
        ) { [weak self] ending in
            guard let self, case .relaying(let relay, _) = state else { return }
            record.relayEnded(ending, up: relay.bytesUp, down: relay.bytesDown)
            worker.session.complete(&record)
            server.leave()
        }
        if let timeout = relayed.timeout {
            relay.endWhenSilent(
                forNanoseconds: timeout.nanoseconds, because: "nothing moved for \(timeout) (session.timeout)")
        }
        state = .relaying(relay, relayed)
        reviewRelay()
        guard case .relaying = state else { return }
        relay.start()
        if worker.isDraining { drain(relay) }
    }
}
