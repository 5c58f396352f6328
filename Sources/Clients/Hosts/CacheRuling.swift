package import PinproxyConfiguration
package import PinproxyHTTPWire
import PinproxySecurity
package import PinproxySession
package import PinproxyTLS

/// The cache settings of a configuration for requests of one URL, with the reasons.
package struct CacheRuling {
    package enum Outcome {
        /// No response is stored, since none passes or the proxy doesn't see it.
        case denied, tunnelled(HostAction), plainToPinned
        /// Servers read the path in different ways, and the rules differ.
        case ambiguous
        case off
        case stores(CacheTerms, ExchangeRules)
    }

    package let url: RequestURL
    /// Nil: the defaults decide.
    package let entry: HostEntry?
    package let outcome: Outcome
    /// Where `cache` is written; nil: nowhere, or it doesn't count.
    package let written: LaidKey?
    private let decision: HostDecision

    /// - Parameter method: of the requests; rules may differ by it.
    package init(_ url: RequestURL, method: String = "GET", in snapshot: Snapshot) {
        self.url = url
        let decision = HostDecision(url.authority.host, port: url.authority.port, in: snapshot)
        self.decision = decision
        entry = decision.entry
        var written: LaidKey?
        outcome = Self.outcome(
            decision, url, method, entry == nil ? snapshot.defaultRules : decision.entry?.rules, &written)
        self.written = written
    }

    private static func outcome(
        _ decision: HostDecision, _ url: RequestURL, _ method: String, _ layers: RuleLayers?, _ written: inout LaidKey?
    ) -> Outcome {
        switch decision.action {
        case .deny: return .denied
        case .tunnel, .verifyTunnel:
            if url.isSecure { return .tunnelled(decision.action) }
        case .intercept: break
        }
        if !url.isSecure, let entry = decision.entry, entry.policy.mode != .none { return .plainToPinned }
        guard let layers else { return .off }
        switch layers.choose(path: String(decoding: url.target, as: UTF8.self), method: method) {
        case .ambiguous: return .ambiguous
        case .decided(let choice):
            written = layers.keys(choice).first { $0.name == CacheRules.Key.cache.rawValue }
            let rules = layers.rules(choice)
            return rules.cache.map { .stores($0, rules) } ?? .off
        }
    }

    /// A server without a pin that matches is let through, and its responses aren't stored.
    package func isReportOnly(at time: UnixTime) -> Bool {
        decision.policy.mode != .none && decision.policy.enforcement(at: time) == .report
    }

    /// Stored responses may be served under these policies; empty: none.
    /// - Parameter upstream: without the local authority among the anchors.
    package func policies(upstream: UpstreamSettings) -> Set<CachePolicy> {
        guard case .stores(let terms, _) = outcome else { return [] }
        let authority = url.authority
        let layer = decision.layer(
            for: url.isSecure ? .secure : .plain, to: ServerName(host: authority.host), upstream: upstream,
            asker: .anybody)
        guard case .success(let layer) = layer else { return [] }
        return Set(
            [ClientPlace.thisMachine, .elsewhere].map { place in
                let target = UpstreamTarget(
                    host: authority.host, port: authority.port, layer: layer, upstream: upstream, client: place,
                    tls: decision.tls, protocols: decision.http.protocols, ping: decision.http.ping)
                return CachePolicy(origin: target.key, rules: terms.identity)
            })
    }
}

extension CacheRuling {
    /// Why nothing is stored; nil: something may be.
    package var refusal: String? {
        let name = url.authority.host
        let place = entry?.location ?? "the defaults of the pin file"
        switch outcome {
        case .denied: return "\(name) is denied (\(place))"
        case .tunnelled(let action): return "the proxy sees no requests with action: \(action.rawValue) (\(place))"
        case .plainToPinned: return "\(name) has pins, so that requests over http are refused (\(place))"
        case .ambiguous: return "servers read the path in different ways, and the rules for it differ: it is refused"
        case .off:
            guard let written else { return "cache is off where nothing is written about it (\(place))" }
            return "cache: off (\(written.source), \(written.place))"
        case .stores: return nil
        }
    }
}
