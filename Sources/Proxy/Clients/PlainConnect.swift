import Configuration
import EventLoop
import HTTPWire
import Serialization
import Session
import TLS
import Transport

/// Plain HTTP inside CONNECT, as clients of `ws://` and `curl --proxytunnel` speak it. The client's first byte tells it
/// from TLS.
///
/// Its requests are decided about like those for an `http://` URL. A client that begins with TLS never reaches a server
/// in the clear.
extension ClientConnection {
    // MARK: Before the client has spoken

    /// Takes port 80 for plain HTTP, where the policy lets that through.
    /// - Parameter route: for a client that speaks TLS.
    /// - Returns: where to connect before the client is answered.
    func beforeItSpeaks(_ route: Route) -> Route {
        guard route.authority.port == Purpose.plain.defaultPort, case .tls = route.target.layer else { return route }
        let rules = route.rules?.rules(.none)
        if let base = rules?.session.baseURL {
            return plainRoute(base.authority, for: base.isSecure ? .secure : .plain, insteadOf: route) ?? route
        }
        if rules?.request.upgradeInsecure == true {
            let authority = route.authority.onPort(Purpose.secure.defaultPort)
            return plainRoute(authority, for: .secure, insteadOf: route) ?? route
        }
        return plainRoute(route.authority, for: .plain, insteadOf: route) ?? route
    }

    /// Connects to the same port in the clear, if its server seems to speak plain HTTP and the policy lets that
    /// through. No client that speaks TLS is served over it.
    /// - Returns: whether it is tried.
    func obtainPlain(after failure: UpstreamFailure, of first: ConnectAttempt) -> Bool {
        guard let plain = plainRoute(after: failure, by: first.route) else { return false }
        let attempt = ConnectAttempt(plain, after: first)
        state = .connecting(attempt)
        boundConnecting()
        // Strong: the attempt drops the closure when it has called it, and when closed(_:) cancels it.
        attempt.start { self.obtainedPlain($0, after: failure, by: first.route) }
        return true
    }

    private func obtainedPlain(
        _ result: Result<UpstreamConnection, UpstreamFailure>, after failure: UpstreamFailure, by route: Route
    ) {
        if holdsBack({ $0.obtainedPlain(result, after: failure, by: route) }) { return }
        guard case .connecting(let attempt) = state else { return }
        switch result {
        case .success(let upstream) where upstream.origin.isRetired:
            upstream.close()
            connectAnew(inPlaceOf: attempt)
        case .success(let upstream): promise(attempt.route, upstream)
        // The first failure says more.
        case .failure: connectFailed(failure, by: route)
        }
    }

    private func plainRoute(after failure: UpstreamFailure, by route: Route) -> Route? {
        guard case .tls(.tls(let error)) = failure, error.mayBePlainHTTP, case .tls = route.target.layer,
            route.authority == (asked ?? route.authority).canonical, route.authority.port != Purpose.secure.defaultPort
        else { return nil }
        return plainRoute(route.authority, for: .plain, insteadOf: route)
    }

    private func plainRoute(_ authority: Authority, for purpose: Purpose, insteadOf route: Route) -> Route? {
        let decision = worker.decide(authority.canonical, for: purpose, client: client(as: route.client))
        return if case .relay(let plain) = decision { plain } else { nil }
    }

    // MARK: When it speaks

    /// CONNECT was answered, and the client has sent something, or ended.
    func clientSpoke() {
        guard case .awaitingHandshake(let route, _) = state else { return server.abort() }
        var first = server.requests.withUnread { $0.isEmpty ? nil : $0[0] }
        if first == nil {
            switch server.stream.peek() {
            case .byte(let next): first = next
            case .nothing: return
            case .ended: break
            }
        }
        if let first, Self.beginsRequest(first) { return speakPlainly(route) }
        // TLS says best what is wrong with what isn't TLS. It must not succeed where no origin was verified.
        if refusalInside != nil || route.isForTLS(to: asked) { return secure() }
        guard first == Self.handshakeRecord else {
            return fail("the client began neither a request nor a TLS handshake")
        }
        obtainSecure(route)
    }

    /// RFC 8446 section 5.1.
    private static let handshakeRecord: UInt8 = 22

    /// Methods begin with a letter, and no TLS record does.
    private static func beginsRequest(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }

    private func speakPlainly(_ route: Route) {
        handshakeEnded()
        isPlainInside = true
        if route.isForTLS(to: asked) { giveBackKept() }
        record.status = 200
        if let refusalInside { record.failed(refusalInside.cause, errorType: refusalInside.proxyStatusError) }
        worker.session.complete(&record)
        state = .inside(route)
        server.serve()
        if !server.requests.isEmpty { server.nextRequest() }
    }

    /// A request inside: it must be for the authority of CONNECT.
    func requestPlainInside(_ route: Route) {
        let connected = asked ?? route.authority
        record.authority = connected.canonical
        if let withdrawal { return fail(withdrawal) }
        run?.requestedInside()
        if let misdirection = misdirection(from: connected, for: .plain) {
            return server.refuseRequest(.misdirected(misdirection, connected: connected))
        }
        if let refusalInside { return server.refuseForGood(refusalInside) }
        requestSettled(connected, .plain)
    }

    // MARK: TLS all the same

    /// The client speaks TLS, and the connection at hand doesn't: another is made and verified before its handshake
    /// continues.
    private func obtainSecure(_ route: Route) {
        server.stream.wantsRead = false
        server.clearDeadline()
        giveBackKept()
        let authority = (asked ?? route.authority).canonical
        switch worker.decide(authority, for: .secure, client: client(as: route.client)) {
        case .relay(let secure):
            guard let attempt = ConnectAttempt(secure, worker: worker) else { return server.abort() }
            state = .connecting(attempt)
            boundConnecting()
            // Strong: the attempt drops the closure when it has called it, and when closed(_:) cancels it.
            attempt.start { self.obtained(by: secure, $0) }
        case .refuse(let error): endHandshake(with: error)
        case .tunnel: fail("after a reload this host is no longer connected to in this way")
        }
    }

    private func obtained(by route: Route, _ result: Result<UpstreamConnection, UpstreamFailure>) {
        if holdsBack({ $0.obtained(by: route, result) }) { return }
        switch result {
        case .success(let upstream):
            record.connected(upstream, at: worker.loop.now)
            hold(upstream)
            beginSecuring(route)
        case .failure(let failure):
            let error = ProxyError.exchange(.unreachable(failure), route.destination)
            guard route.entry?.showsRefusals == true, failure.isRefusalOfOrigin else {
                return endHandshake(with: error)
            }
            worker.reportPage(error, of: route, client: source)
            refused(error)
            refusalInside = error
            beginSecuring(route)
        }
    }

    /// CONNECT was answered, so that the refusal is a TLS alert.
    private func endHandshake(with error: ProxyError) {
        refused(error)
        handshakeEnded()
        state = .open
        record.failed(error.cause, errorType: error.proxyStatusError)
        worker.session.complete(&record)
        server.answer(TunnelAlert.handshakeFailure.record, then: .linger)
    }
}

extension Route {
    /// Whether a client that speaks TLS inside its CONNECT is served by it.
    fileprivate func isForTLS(to asked: Authority?) -> Bool {
        guard case .tls = target.layer else { return false }
        return asked.map { $0.canonical == authority } ?? true
    }
}
