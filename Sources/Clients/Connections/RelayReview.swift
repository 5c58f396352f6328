import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// Closes open connections that a reload forbids. Requests are judged one by one; tunnels and upgraded protocols carry
/// none, so they are closed if the new configuration would not have allowed them.
extension ClientConnection {
    /// Nil: the configuration in force still allows the client and its user.
    func withdrawal(of identity: ClientIdentity) -> String? {
        guard isStillAllowed(identity) else {
            return "after a reload this client is no longer allowed (proxy.allow_clients)"
        }
        guard let users = worker.users, !identity.isLetIn(by: users) else { return nil }
        if identity.run != nil {
            return "after a reload proxy.users requires a user name and a password, and this run has no valid ones"
        }
        return identity.user == nil
            ? "after a reload proxy.users requires a user name and a password, and this connection sent none"
            : "after a reload the user who opened this connection is no longer in proxy.users, or has another password"
    }

    /// Called when a relay begins, and after each reload.
    package func reviewRelay() {
        if case .relaying(let relay, let relayed) = carrier {
            return review(relay, relayed, of: tunnel?.identity ?? request.identity)
        }
        guard let http2 else { return }
        for request in Array(http2.requests) {
            if let upgrade = request.upgrade { review(upgrade.relay, upgrade.relayed, of: request.identity) }
        }
    }

    private func review(_ relay: Relay, _ relayed: Relayed, of identity: ClientIdentity) {
        // Reviewed once the client is known.
        if awaitsPeer(for: relayed.route.authority) { return askForDecision() }
        if let withdrawal = withdrawal(of: identity) { return relay.cancel(because: withdrawal) }
        guard relayed.route.snapshot !== worker.snapshot else { return }
        switch review(relayed) {
        case .success(let route): relayed.route = route
        case .failure(let objection): relay.cancel(because: objection.cause)
        }
    }

    private struct Objection: Error {
        let cause: String
    }

    /// The present route, if it would make the same connection.
    private func review(_ relayed: Relayed) -> Result<Route, Objection> {
        let host = relayed.route.authority
        let old = relayed.route.target.layer
        let purpose: Purpose = if case .plain = old { .plain } else { .secure }
        let fresh: Route
        switch worker.decide(host, for: purpose, client: client(as: relayed.route.client)) {
        case .refuse(let error): return .failure(Objection(cause: "after a reload: \(error.cause)"))
        case .relay(let route), .tunnel(let route): fresh = route
        }
        // A parent's address is not the destination's.
        if fresh.target.key.parent == nil, fresh.target.key.addresses.objection(to: relayed.address.ip) != nil {
            let cause = "after a reload \(relayed.address.ip) may no longer be connected to (upstream.block_addresses)"
            return .failure(Objection(cause: cause))
        }
        switch (old, fresh.target.layer) {
        case (.plain, .plain), (.tunnel, .tunnel), (.verifiedTunnel, .tunnel): return .success(fresh)
        case (.tls(let before, let anchorsBefore, _), .tls(let policy, let anchors, _)),
            (.verifiedTunnel(let before, let anchorsBefore, _), .verifiedTunnel(let policy, let anchors, _)):
            // A mismatch that was only reported may be enforced meanwhile (enforce_from).
            let isOver = relayed.verdict.map { $0.report != nil && $0.validUntil <= worker.unixTime() } ?? false
            if !isOver, policy.digest == before.digest, anchors.digest == anchorsBefore.digest {
                return .success(fresh)
            }
            guard policy.requirements.minimumTLS <= before.requirements.minimumTLS else {
                return .failure(Objection(cause: "after a reload \(host) must offer a newer TLS version (min_tls)"))
            }
            return judge(relayed, by: fresh)
        default: return .failure(Objection(cause: "after a reload \(host) has another action"))
        }
    }

    /// Judges the origin's chain by the policy in force.
    private func judge(_ relayed: Relayed, by fresh: Route) -> Result<Route, Objection> {
        guard let verdict = relayed.verdict, let now = fresh.judge(verdict, at: worker.unixTime()) else {
            return .failure(
                Objection(cause: "after a reload \(fresh.authority) must be verified, and this connection was not"))
        }
        guard let refusal = now.refusal else { return .success(fresh) }
        let contact = OriginContact(address: relayed.address, answer: nil, tls: nil)
        worker.report(now, WorkerContext.Judged(route: fresh, requester: Requester(record)), contact)
        return .failure(Objection(cause: "after a reload: \(refusal.title)"))
    }
}

extension Route {
    fileprivate func judge(_ verdict: Verdict, at time: Int64) -> Verdict? {
        switch target.layer {
        case .plain, .tunnel: return nil
        case .tls(let policy, let anchors, let name), .verifiedTunnel(let policy, let anchors, let name):
            let fresh = policy.evaluate(verdict.presented, host: name, anchors: anchors, at: time)
            guard fresh.isAccepted, let evidence = verdict.evidence else { return fresh }
            return policy.confirm(fresh, with: evidence, at: time)
        }
    }
}
