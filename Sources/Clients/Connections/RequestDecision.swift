import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySecurity
import PinproxySession

/// Decides about requests to the proxy, and inside CONNECT.
extension ClientRequest {
    // MARK: Requests to the proxy

    func receivedByProxy() {
        guard connection.isAllowed || showsOwnersToken else { return server.refuseRequest(objectionToClient) }
        identity = ClientIdentity()
        // An earlier CONNECT that failed is forgotten.
        if connection.tunnel != nil { connection.tunnel = nil }
        let (users, runs) = (worker.users, worker.shared.runs)
        if users == nil, runs.isEmpty { return performRequest() }
        let credentials = server.readRequest { Credentials(in: $0.head, $0.bytes) }
        if let credentials, let token = RunToken(credentials) { return requestOfRun(runs.run(with: token), users) }
        if !runs.isEmpty, awaitsRuns({ $0.received(by: $0.server) }) { return }
        run?.requested()
        guard let users else { return performRequest() }
        guard let credentials else {
            run?.challenged(asking: askedAuthority)
            return refuseAsker(.credentialsMissing)
        }
        awaitRuling()
        users.verify(credentials, for: Claimant(peer, source: connection.source), on: worker.loop) {
            [weak self] ruling in
            self?.verified(credentials, ruling, by: users)
        }
    }

    /// - Parameter run: nil: it has ended, or belongs to another proxy.
    private func requestOfRun(_ run: Run?, _ users: UserVerifier?) {
        identity.run = run
        run?.requested()
        if let run, run.hasChallenges { run.answeredChallenge(asking: askedAuthority) }
        guard let users, !identity.isLetIn(by: users) else { return performRequest() }
        refuseAsker(run == nil ? .runUnknown : .runWithoutUser)
    }

    private func verified(_ credentials: Credentials, _ ruling: UserVerifier.Ruling, by users: UserVerifier) {
        guard isAuthenticating, !holdsBack({ $0.verified(credentials, ruling, by: users) }) else { return }
        settle()
        switch ruling {
        case .right:
            identity.user = users.user(named: credentials.user)
            if worker.users.map(identity.isLetIn) != false { performRequest() } else { refuseAsker(.credentialsWrong) }
        case .wrong: refuseAsker(.credentialsWrong)
        case .notCompared(let what): refuseAsker(.credentialsNotCompared(what))
        }
    }

    /// Refuses the client before its request is examined.
    private func refuseAsker(_ error: ProxyError) {
        if let host = askedAuthority?.host, TestHost(host) != nil { record.entrySlot = EntrySlots.uncounted }
        server.refuseRequest(error)
    }

    private func performRequest() {
        switch server.readRequest({ RequestDestination.of($0.head, $0.bytes) }) {
        case .proxyItself: server.refuseRequest(.askedForProxyItself(url: connection.ownURL ?? connection.server.url))
        case .malformed(let error):
            record.forgetPath()
            server.refuseRequest(.badAuthority(error))
        case .malformedTunnel(let defect): server.refuseRequest(.badConnectTarget(defect))
        case .unsupportedScheme(let url):
            record.forgetPath()
            server.refuseRequest(.unsupportedScheme(url))
        case .tunnel(let authority):
            record.authority = authority.canonical
            guard connection.awaitsPeer(for: authority.canonical) else { return requestTunnel(authority) }
            identify { $0.requestTunnel(authority) }
        case .url(let named, let wanted):
            requestSettled(named, wanted)
        }
    }

    /// A request for a URL, or inside a CONNECT for plain HTTP.
    func requestSettled(_ named: Authority, _ wanted: Purpose) {
        guard let (authority, purpose) = settled(named, wanted) else { return }
        record.authority = authority.canonical
        guard connection.awaitsPeer(for: authority.canonical) else { return requestURL(authority, purpose) }
        identify { $0.requestURL(authority, purpose) }
    }

    private func requestTunnel(_ authority: Authority) {
        switch decide(authority.canonical, for: .secure) {
        case .refuse(let error): server.refuseRequest(error)
        case .relay(let route), .tunnel(let route):
            connection.connect(authority, by: identity, connection.beforeItSpeaks(route))
        }
    }

    private func requestURL(_ authority: Authority, _ purpose: Purpose) {
        switch decide(authority.canonical, for: purpose) {
        case .refuse(let error): server.refuseRequest(error)
        case .relay(let route): beginExchange(route, of: connection)
        case .tunnel: server.refuseRequest(.cannotTunnelURL(authority.description))
        }
    }

    private func decide(_ authority: Authority, for purpose: Purpose) -> Decision {
        record.authority = authority
        if !hasMemory(for: purpose) { return .refuse(.noMemory) }
        if server.request.hasVia, hasPassed(authority) { return .refuse(.loop(authority.description)) }
        let via = server.readRequest { $0.head.via(in: $0.bytes) }
        let decision = worker.decide(
            authority, for: purpose, client: Route.Client(place: connection.place, asker: .client(peer), via: via))
        if case .refuse = decision {
            let own = worker.shared.testHosts.entry(for: authority.host)
            let entry = own ?? worker.snapshot.entry(for: authority.host, port: authority.port)
            record.entry = entry?.pattern
            record.entrySlot = worker.shared.slots.place(of: entry)
        }
        return decision
    }

    private func hasMemory(for purpose: Purpose) -> Bool {
        let pressure = worker.shared.pressure
        return switch purpose {
        case .secure: pressure.admitsConnection
        case .plain: pressure.admitsRequest()
        }
    }

    /// Whether the request passed this proxy before.
    private func hasPassed(_ authority: Authority) -> Bool {
        server.readRequest { $0.head.hasPassed(worker.shared.loops.pseudonym(for: authority), in: $0.bytes) }
    }

    // MARK: Requests inside CONNECT

    func receivedInside(_ tunnel: ClientTunnel, of connection: ClientConnection) {
        let route = tunnel.route
        record.authority = route.authority
        record.entrySlot = route.slot
        if route.snapshot === worker.snapshot { return performInside(tunnel, of: connection) }
        // There was a reload.
        if let withdrawal = connection.withdrawal(of: identity) { return closeConnection(withdrawal) }
        if connection.awaitsPeer(for: route.authority) {
            return identify { $0.received(by: $0.server) }
        }
        guard
            case .relay(let fresh) = worker.decide(
                route.authority, for: .secure, client: connection.client(as: route.client))
        else {
            return closeConnection("after a reload this host may no longer be intercepted")
        }
        tunnel.route = fresh
        performInside(tunnel, of: connection)
    }

    private func performInside(_ tunnel: ClientTunnel, of connection: ClientConnection) {
        connection.showedTrust()
        (identity.run ?? connection.inquiries.run)?.requestedInside()
        if let misdirection = misdirection(in: tunnel, for: .secure) {
            return server.refuseRequest(.misdirected(misdirection, connected: tunnel.asked))
        }
        if !worker.shared.pressure.admitsRequest() { return server.refuseRequest(.noMemory) }
        if let refusal = tunnel.refusalInside { return server.refuseForGood(refusal) }
        let authority = tunnel.route.authority
        if server.request.hasVia, hasPassed(authority) { return server.refuseRequest(.loop(authority.description)) }
        beginExchange(tunnel.route, of: connection)
    }

    /// It must be for CONNECT's authority.
    func receivedPlainInside(_ tunnel: ClientTunnel) {
        record.authority = tunnel.asked.canonical
        if let withdrawal = connection.withdrawal(of: identity) { return closeConnection(withdrawal) }
        run?.requestedInside()
        if let misdirection = misdirection(in: tunnel, for: .plain) {
            return server.refuseRequest(.misdirected(misdirection, connected: tunnel.asked))
        }
        if let refusal = tunnel.refusalInside { return server.refuseForGood(refusal) }
        requestSettled(tunnel.asked, .plain)
    }

    /// Where SNI or the request differs from CONNECT's authority; nil: nowhere.
    private func misdirection(in tunnel: ClientTunnel, for purpose: Purpose) -> Misdirection? {
        if let name = tunnel.misdirectedName { return Misdirection(serverName: name) }
        return server.readRequest { view in
            guard
                let source = RequestDestination.disagreement(
                    of: view.head, view.bytes, with: tunnel.asked, for: purpose)
            else { return nil }
            return Misdirection(source, view.bytes, for: purpose)
        }
    }

    private func beginExchange(_ route: Route, of connection: ClientConnection) {
        record.entry = route.destination.source?.pattern
        record.entrySlot = route.slot
        if server.request.method.countsForwards {
            switch server.readRequest({ $0.head.maxForwards(in: $0.bytes) }) {
            case .malformed: return server.refuseRequest(.badMaxForwards)
            case .hops(0): return answerAsFinalRecipient()
            case .hops, .unlimited: break
            }
        }
        if self.route !== route { self.route = route }
        timeout = nil
        guard let layers = route.rules else {
            return server.begin(to: route.destination, over: connection.takeKept(for: route)?.lease())
        }
        beginShaped(route, by: layers)
    }

    private func answerAsFinalRecipient() {
        let servesOn = server.servesOn && !worker.isDraining
        let answer = server.readRequest { FinalRecipient.answer(to: $0.head, $0.bytes, keepsConnection: servesOn) }
        record.status = 200
        worker.session.complete(&record)
        if servesOn { server.dropHead() }
        server.answer(answer, servesOn: servesOn)
    }
}
