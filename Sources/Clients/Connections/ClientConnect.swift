import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// CONNECT: the upstream first, then the answer, then TLS with a minted leaf, or a tunnel.
extension ClientConnection {
    /// - Parameter overtaken: the previous attempt, which a reload overtook.
    func connect(
        _ asked: Authority, by identity: ClientIdentity, _ route: Route, inPlaceOf overtaken: ConnectAttempt? = nil
    ) {
        record.entry = route.destination.source?.pattern
        record.entrySlot = route.slot
        record.kind = route.target.key.layer.isShared ? .interception : .tunnel
        worker.session.begin(&record)
        // An overtaken attempt has dropped the head.
        let agent = overtaken == nil ? server.readRequest { ClientAgent.of($0) } : tunnel?.agent ?? .none
        let isForGRPC = overtaken?.isForGRPC ?? server.readRequest { RefusalForm.isAskedForByGRPC($0) }
        server.dropHead()
        if let refusal = refusalWithoutAuthority(route) { return server.refuseRequest(refusal) }
        guard let attempt = ConnectAttempt(to: asked, route, worker: worker, isForGRPC: isForGRPC, inPlaceOf: overtaken)
        else {
            return server.refuseRequest(.overtaken(host: route.authority.host))
        }
        tunnel = ClientTunnel(asked, by: identity, agent, route: route, attempt: attempt)
        happened(.connect)
    }

    /// The refusal where the local authority has expired or may not sign: after a 200 the client could only be cut off.
    private func refusalWithoutAuthority(_ route: Route) -> ProxyError? {
        guard route.target.key.layer.isShared else { return nil }
        let now = worker.unixTime()
        let signer = worker.configuration.leaves.authorities.signer(at: now)
        let host = route.authority.host
        if now > signer.end { return .authorityExpired(signer.end, host: host) }
        return signer.violation(by: ServerName(host: host)).map { .outsideNameConstraints(reason: $0, host: host) }
    }

    /// Takes the signer's certificate; without one, the refusal. After a 200 the client could only be cut off.
    private func refusalWithoutLeaf(of tunnel: ClientTunnel) -> ProxyError? {
        guard worker.signer != nil, tunnel.route.servesTLS(for: tunnel.asked) else { return nil }
        tunnel.leaf = try? worker.leaf(for: tunnel.asked)
        if tunnel.leaf != nil { return nil }
        let host = tunnel.route.authority.host
        // Without the signer's word a reload has replaced the authority.
        return tunnel.attempt?.unsigned.map { .unsigned("\($0)", host: host) } ?? .overtaken(host: host)
    }

    // MARK: What the results are

    /// - Returns: nil: the CONNECT was given up.
    func event(of news: News) -> ConnectionState.Event? {
        guard tunnel != nil else { return nil }
        switch news {
        case .upstream(let result):
            guard case .connecting(let attempt) = state.phase else { return nil }
            return event(of: result, attempt)
        case .answered:
            if isPromiseRetired { cause = Self.withdrawn }
            return .answered(isRetired: isPromiseRetired)
        case .secured(let result): return .secured(isWhole: handshakeEnded(result))
        case .judged(let ending): return .judged(tunnelEnded(ending))
        }
    }

    private func event(
        of result: Result<UpstreamConnection, UpstreamFailure>, _ attempt: ConnectionState.Attempt
    ) -> ConnectionState.Event? {
        guard let tunnel else { return nil }
        switch result {
        case .success(let upstream):
            if let route = tunnel.attempt?.route { tunnel.route = route }
            if attempt == .secure {
                if let refusal = refusalWithoutLeaf(of: tunnel) {
                    upstream.letGo()
                    tunnel.refusal = refusal
                    return .connectFailed(.told)
                }
                tunnel.attempt = nil
                record.connected(upstream, at: worker.loop.now)
                hold(upstream)
                return .connected(.inspected)
            }
            if upstream.origin.isRetired {
                upstream.letGo()
                return .overtaken
            }
            if let refusal = refusalWithoutAuthority(tunnel.route) ?? refusalWithoutLeaf(of: tunnel) {
                upstream.letGo()
                tunnel.refusal = refusal
                return .connectFailed(.told)
            }
            tunnel.attempt = nil
            record.connected(upstream, at: worker.loop.now)
            promise(upstream)
            return .connected(tunnel.passage)
        case .failure(let failure):
            if attempt == .asAsked, let plain = plainRoute(after: failure, of: tunnel) {
                tunnel.failure = failure
                tunnel.attempt = tunnel.attempt.map { ConnectAttempt(plain, after: $0) }
                return .connectFailed(.mayBePlain)
            }
            return .connectFailed(
                connectFailed(tunnel.failure ?? failure, by: tunnel.route, isAnswered: attempt == .secure))
        }
    }

    private func connectFailed(
        _ failure: UpstreamFailure, by route: Route, isAnswered: Bool
    ) -> ConnectionState.ConnectFailure {
        let error = ProxyError.upstream(failure, route.destination.authority, route.destination.source)
        guard tunnel?.attempt?.showsRefusals == true, failure.isRefusalOfOrigin,
            isAnswered || refusalWithoutAuthority(route) == nil && tunnel.flatMap(refusalWithoutLeaf) == nil
        else {
            tunnel?.refusal = error
            return .told
        }
        tunnel?.refusalInside = error
        if isAnswered { showRefusal() }
        return .shown
    }

    static let withdrawn = "after a reload connections of this kind to this host are no longer allowed"

    // MARK: What is done

    func perform(_ action: ConnectionState.Action) {
        switch action {
        case .none: break
        case .open: open()
        case .decideAnew: decideAnew()
        case .answer(let passage): answer(for: passage)
        case .refuse: refuse()
        case .awaitHandshake: awaitHandshake()
        case .secure: secure()
        case .serve: serveInside()
        case .verify: verify()
        case .relay: relay()
        case .alert: alert()
        case .fail: fail(cause)
        case .giveUp: giveUp()
        case .cut: cut(cause ?? Self.stopped)
        case .pause: pause()
        case .proceed: proceed()
        }
    }

    private func open() {
        boundConnecting()
        // Strong: the attempt drops the closure after its call, and closed(_:) cancels it. Weak would cost two
        // allocations.
        tunnel?.attempt?.start(for: self) { self.arrived(.upstream($0)) }
    }

    /// A reload came while the connection was made: its configuration would have made another one, or none.
    func decideAnew() {
        guard let tunnel = tunnel.take(), let overtaken = tunnel.attempt else { return }
        if worker.isDraining { return server.refuseRequest(.stopping(host: overtaken.route.authority.host)) }
        if let objection = objectionAfterReload(to: tunnel.identity) { return server.refuseRequest(objection) }
        let authority = tunnel.asked.canonical
        if awaitsPeer(for: authority) {
            // Not identify(then:), which may reread the request: the server has dropped its head.
            self.tunnel = tunnel
            request.keep { $0.connection.decideAnew() }
            return askForDecision()
        }
        switch worker.decide(authority, for: .secure, client: client(as: overtaken.route.client)) {
        case .refuse(let error): server.refuseRequest(error)
        case .relay(let route), .tunnel(let route):
            connect(tunnel.asked, by: tunnel.identity, beforeItSpeaks(route), inPlaceOf: overtaken)
        }
    }

    private func answer(for passage: ConnectionState.Passage) {
        // A browser displays a refusal inside its TLS only. No request is passed on.
        if passage == .refusal { showRefusal() } else { holdPromised() }
        handshakeBegan()
        server.answer(Self.established, then: .handOver)
    }

    private static let established = Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)

    private func showRefusal() {
        guard let tunnel, let error = tunnel.refusalInside else { return }
        worker.reportPage(error, of: tunnel.route, for: Requester(record))
        request.refused(error, isShown: true)
    }

    private func refuse() {
        guard let tunnel = tunnel.take() else { return }
        tunnel.attempt?.cancel()
        server.refuseRequest(tunnel.refusal ?? .stopping(host: tunnel.route.authority.host))
    }

    // MARK: Interception

    private func awaitHandshake() {
        guard let tunnel else { return }
        server.setDeadline(afterNanoseconds: handshakeNanoseconds)
        do {
            // Minted while the client prepares its handshake.
            if tunnel.servesTLS, tunnel.leaf == nil { tunnel.leaf = try worker.leaf(for: tunnel.asked) }
        } catch {
            return fail("no certificate for \(tunnel.route.authority): \(error)")
        }
        guard server.requests.isEmpty else { return clientSpoke() }
        // TLS holds tens of KiB from its first step: it begins when the client does.
        server.requests.releaseBuffer()
        server.stream.wantsRead = true
    }

    /// The client sent something, or ended.
    private func secure() {
        guard let tunnel, let leaf = tunnel.leaf.take() else { return server.abort() }
        let early = server.requests.takeReceived()
        do {
            let connection = try server.stream.withDescriptor { descriptor in
                try TLSConnection(
                    server: worker.shared.interceptedTLS.context(for: worker.snapshot.proxy.http),
                    descriptor: descriptor, identity: leaf,
                    ticketContext: SHA256Digest.of(Array(tunnel.asked.description.utf8)).bytes, alreadyReceived: early)
            }
            server.stream.secure(connection)
        } catch {
            fail("no certificate for \(tunnel.route.authority): \(error)")
        }
    }

    private func handshakeEnded(_ result: Result<Void, StreamError>) -> Bool {
        guard let tunnel else { return false }
        switch result {
        case .success:
            if let name = server.stream.withTLS({ $0.clientServerName }) ?? nil, !tunnel.asked.isNamedWithPort(name) {
                tunnel.misdirectedName = name
            }
            tunnel.securedAt = worker.loop.now
            tunnel.isResumed = server.stream.withTLS { $0.isResumed } ?? false
            worker.counters.countClientHandshake(isResumed: tunnel.isResumed, at: tunnel.route.slot)
            return true
        case .failure(let error):
            worker.counters.countClientHandshake(isResumed: nil, at: tunnel.route.slot)
            cause = "the client's TLS handshake failed: \(error)\(advice(on: error))"
            if let cause { run?.refused(cause, asking: record.authority) }
            return false
        }
    }

    private func advice(on error: StreamError) -> String {
        if Self.hasVanished(error) { return ": it seems not to trust the proxy's authority" }
        guard case .tls(let failure) = error, failure.kind == .noSharedApplicationProtocol else { return "" }
        let spoken = worker.snapshot.proxy.http.map(\.rawValue).joined(separator: " or ")
        return
            "; it has to offer \(spoken) (proxy.http) too, or let the host pass unopened, its pins still verified, "
            + "with action: verify-tunnel"
    }

    /// Reads requests inside CONNECT, over TLS or plain.
    private func serveInside() {
        // Over TLS with the first request, or its absence.
        if tunnel?.securedAt == nil { handshakeEnded() }
        record.status = 200
        record.clientGroup = server.stream.withTLS { $0.groupName } ?? nil
        if let refusal = tunnel?.refusalInside {
            record.failed(
                refusal.cause, errorType: refusal.proxyStatusError, isPinFailure: refusal.report.isPinFailure,
                contact: refusal.contact)
        }
        worker.session.complete(&record)
        server.streamNumber = nil
        if server.stream.withTLS({ $0.alpn }) == HTTPProtocol.http2.rawValue { return serveHTTP2() }
        server.serve()
        if tunnel?.isPlain == true, !server.requests.isEmpty { server.nextRequest() }
    }
}
