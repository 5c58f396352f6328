import PinproxyConfiguration
package import PinproxyHTTPWire
import PinproxySerialization
package import PinproxySession

/// Routes redirects of a client's exchanges like the client's own requests.
extension ClientRequest {
    package func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling {
        let authority = url.authority.canonical
        if request.head.hasPassed(worker.shared.loops.pseudonym(for: authority), in: request.bytes) {
            return .fail(ProxyError.loop(authority.description).cause)
        }
        // The client can follow it itself, once it is identified.
        if connection.awaitsPeer(for: authority) { return .pass }
        let client = Route.Client(
            place: connection.place, asker: .client(peer), via: request.head.via(in: request.bytes))
        let route: Route
        switch worker.decide(authority, for: url.isSecure ? .secure : .plain, client: client) {
        case .refuse(let error): return .refuse(error.report.title)
        // The proxy doesn't read tunnels: the client follows it itself.
        case .tunnel: return .pass
        case .relay(let allowed): route = allowed
        }
        // A client certificate would vouch for the client, but another origin chose this target.
        if isAbroad, route.target.hasIdentity { return .pass }
        guard let layers = route.rules else { return follow(route, by: nil) }
        guard case .success(let rules) = worker.rules(of: layers, for: request) else {
            return .fail(ProxyError.ambiguousPath(host: authority.host, entry: route.entry?.location).cause)
        }
        // Rules only rewrite requests that the client itself sends.
        if rules.writesRequests || rules.request.upgradeInsecure && !url.isSecure { return .pass }
        if !isAbroad, !url.isSecure, rules.sendsSecret {
            return .refuse(ProxyError.secretInTheClear(host: authority.host, entry: route.entry?.location).cause)
        }
        if worker.session.connector.network.outlook.refusal(by: rules, to: route.target) != nil { return .pass }
        rules.counts.countExchange()
        return follow(route, by: rules)
    }

    private func follow(_ route: Route, by rules: ExchangeRules?) -> RedirectRuling {
        self.route = route
        return .follow(route.destination, rules)
    }
}
