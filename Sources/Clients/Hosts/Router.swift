import Configuration
import HTTPWire
import Records
import Session
import TLS

/// Decides where the requests of one worker's clients go, by the configuration in force.
struct Router {
    let configuration: ActiveConfiguration
    let pool: UpstreamPool
    let loops: LoopDetection
    let slots: EntrySlots
    let testHosts: TestHosts

    /// - Parameter authority: canonical.
    func decide(_ authority: Authority, for purpose: Purpose, client: Route.Client) -> Decision {
        let snapshot = configuration.snapshot
        let decision = HostDecision(authority.host, port: authority.port, in: snapshot, testHosts: testHosts)
        let layer: UpstreamTarget.Layer
        switch decision.layer(for: purpose, to: ServerName(host: authority.host), upstream: configuration.upstream, asker: client.asker) {
        case .success(let allowed): layer = allowed
        case .failure(.denied): return .refuse(.denied(host: authority.description, entry: decision.entry?.location))
        case .failure(.notAdmitted(let peer, let entry, let clients)):
            return .refuse(.clientNotAdmitted(ClientObjection(peer, entry, clients, host: authority.description)))
        case .failure(.plainToPinned(let entry)):
            return .refuse(.plainToPinnedHost(authority.description, entry: entry.location))
        }
        let pseudonym = snapshot.proxy.via ? loops.pseudonym(for: authority) : nil
        let target = UpstreamTarget(
            host: authority.host, port: authority.port, layer: layer, upstream: decision.upstream ?? configuration.upstream,
            client: client.place, via: via(pseudonym, after: client.via), tls: decision.tls)
        let route = Route(
            snapshot: snapshot, entry: decision.entry,
            destination: Destination(
                authority: authority, target: target, origin: pool.origin(for: target.key),
                terms: configuration.terms, via: pseudonym,
                source: decision.entry?.source),
            slot: slots.place(of: decision.entry), client: client)
        return switch layer {
        case .tunnel, .verifiedTunnel: .tunnel(route)
        case .plain, .tls: .relay(route)
        }
    }

    /// What a CONNECT to the parent proxy says in Via: a loop of CONNECTs is known by that alone.
    private func via(_ pseudonym: ViaPseudonym?, after others: String?) -> String? {
        guard configuration.upstream.parent != nil, let pseudonym else { return others }
        return (others.map { "\($0), " } ?? "") + "1.1 \(pseudonym)"
    }
}
