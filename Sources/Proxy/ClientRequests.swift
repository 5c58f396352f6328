import Configuration
import EventLoop
import HTTPWire
import Session
import Transport

/// From received bytes to an exchange: reading heads, checking who asks and for what.
extension ClientConnection {
    func receiveRequest() {
        repeat {
            switch requests.receive(from: stream, limit: worker.snapshot.limits.requestHead) {
            case .received?: nextRequest()
            case .blocked?: return requests.rest()
            case .ended?:
                hasEnded = true
                // Requests that came before the end are still answered.
                if !nextRequest() { close() }
                return
            case .failed?: return abort()
            case nil:
                // No room for more: pipelined requests fill it, or one head that is too large.
                if nextRequest() { continue }
                return refuse(.requestHeadTooLarge(worker.snapshot.limits.requestHead))
            }
        } while isAwaitingRequest && stream.holdsBytes
    }

    private var isAwaitingRequest: Bool {
        if case .awaitingRequest = phase { true } else { false }
    }

    func receiveAhead() {
        switch requests.receive(from: stream, limit: SlabPool.slabSize) {
        case nil, .ended?: stream.wantsRead = false
        case .received?, .blocked?: break
        case .failed?: abort()
        }
    }

    /// Looks for a whole head in what was received; false if more must come.
    @discardableResult
    func nextRequest() -> Bool {
        parser.limit = worker.snapshot.limits.requestHead
        let progress = unsafe parser.parseRequest(
            Span(_unsafeBytes: requests.unread), into: &exchange.request)
        switch progress {
        case .incomplete: return false
        case .tooLarge: refuse(.requestHeadTooLarge(worker.snapshot.limits.requestHead))
        case .tooManyFields: refuse(.tooManyRequestFields)
        case .malformed(let error):
            let defect = unsafe RequestDestination.targetDefect(
                behind: error, exchange.request, Span(_unsafeBytes: requests.unread))
            refuse(defect.map(ProxyError.badConnectTarget) ?? .badRequest(error))
        case .complete:
            parser.reset()
            deadline.clear()
            headIsPending = true
            unsafe exchange.record.began(
                exchange.request, Span(_unsafeBytes: requests.unread), at: worker.loop.now)
            if isIntercepted { requestInside() } else { requestToProxy() }
        }
        return true
    }

    /// A request to the proxy itself.
    func requestToProxy() {
        guard isAllowed else { return refuseRequest(.clientNotAllowed(peer.ip.description)) }
        guard let users = worker.users else { return performRequest() }
        guard let credentials = unsafe users.credentials(
            in: exchange.request, Span(_unsafeBytes: requests.unread))
        else { return refuseRequest(.credentialsMissing) }
        phase = .authenticating
        deadline.set(afterNanoseconds: worker.idleNanoseconds)
        users.verify(credentials, on: worker.loop) { [weak self] isGood in
            guard let self, case .authenticating = phase else { return }
            deadline.clear()
            if isGood { performRequest() } else { refuseRequest(.credentialsWrong) }
        }
    }

    func performRequest() {
        let request = exchange.request
        let outcome = unsafe RequestDestination.of(request, Span(_unsafeBytes: requests.unread))
        switch outcome {
        case .proxyItself: refuseRequest(.askedForProxyItself)
        case .malformed(let error): refuseRequest(.badAuthority(error))
        case .malformedTunnel(let defect): refuseRequest(.badConnectTarget(defect))
        case .unsupportedScheme(let scheme): refuseRequest(.unsupportedScheme(scheme))
        case .tunnel(let authority):
            exchange.record.authority = authority
            switch worker.decide(authority, for: .secure) {
            case .refuse(let error): refuseRequest(error)
            case .relay(let route), .tunnel(let route): connect(route)
            }
        case .url(let authority, let purpose):
            exchange.record.authority = authority
            switch worker.decide(authority, for: purpose) {
            case .refuse(let error): refuseRequest(error)
            case .relay(let route): beginExchange(route)
            case .tunnel: refuseRequest(.cannotTunnelURL(authority.description))
            }
        }
    }

    /// A request behind a CONNECT: the authority is settled.
    func requestInside() {
        guard var route else { return }
        exchange.record.authority = route.authority
        if route.snapshot !== worker.snapshot {
            guard isAllowed else { return fail("after a reload this client is no longer allowed") }
            guard case .relay(let fresh) = worker.decide(route.authority, for: .secure) else {
                return fail("after a reload this host may no longer be intercepted")
            }
            route = fresh
            self.route = fresh
        }
        if let misdirectedName {
            return refuseRequest(.misdirected(asked: misdirectedName, connected: route.authority.description))
        }
        let agrees = unsafe RequestDestination.agrees(
            exchange.request, Span(_unsafeBytes: requests.unread), with: route.authority)
        guard agrees else {
            let host = unsafe exchange.request.host?.text(in: Span(_unsafeBytes: requests.unread)) ?? ""
            return refuseRequest(.misdirected(asked: host, connected: route.authority.description))
        }
        beginExchange(route)
    }

    private func beginExchange(_ route: Route) {
        exchange.record.entry = route.entry?.pattern
        switch unsafe exchange.request.maxForwards(in: Span(_unsafeBytes: requests.unread)) {
        case .malformed: return refuseRequest(.badMaxForwards)
        case .hops(0): return answerAsFinalRecipient()
        case .hops, .unlimited: break
        }
        phase = .exchanging
        headIsPending = false
        exchange.begin(to: route, leased: takeLeased(for: route))
    }

    private func answerAsFinalRecipient() {
        let request = exchange.request
        let keeps = request.framing == .none && request.keepsAlive && !worker.isDraining
        let answer = unsafe FinalRecipient.answer(
            to: request, Span(_unsafeBytes: requests.unread), keepsConnection: keeps)
        exchange.record.status = 200
        worker.log(&exchange.record, of: self)
        if keeps { skipHead() }
        say(answer, then: keeps ? .nextRequest : .linger)
    }

    /// The upstream connection at hand, if the policy in force would have made it and it still stands.
    private func takeLeased(for route: Route) -> UpstreamConnection? {
        guard let leased else { return nil }
        self.leased = nil
        if !leased.isOver, leased.validUntil > worker.unixTime(), leased.origin.key == route.target.key {
            return leased
        }
        leased.close()
        return nil
    }

    /// Keeps an upstream connection for the next request: it is nobody else's.
    func keep(_ upstream: UpstreamConnection) {
        leased = upstream
        upstream.hold()
    }

    /// The exchange is over and logged; the last byte of its response has been written.
    func exchangeEnded(keepsConnection: Bool) {
        guard case .exchanging = phase else { return }
        guard keepsConnection, !(hasEnded && requests.unread.isEmpty) else { return linger() }
        lastUsed = worker.loop.now
        phase = .awaitingRequest
        stream.wantsRead = true
        deadline.set(afterNanoseconds: worker.requestNanoseconds)
        if requests.unread.isEmpty {
            requests.rest()
            if !stream.holdsBytes { return }
        }
        // Pipelined requests wait for their turn of the loop, so that a long row of them starves no one.
        worker.loop.afterThisTurn { [weak self] in
            guard let self, case .awaitingRequest = phase else { return }
            if !requests.unread.isEmpty { nextRequest() }
            if isAwaitingRequest, stream.holdsBytes { receiveRequest() }
        }
    }
}
