import Configuration
import HTTPWire
import Security
import Session
import TLS

/// Where the requests for one authority go under one snapshot, and what decided it.
final class Route {
    let snapshot: Snapshot
    /// What decided; nil: the defaults.
    let entry: HostEntry?
    let destination: Destination
    /// Whom it is for.
    let client: Client

    /// What a route depends on besides the configuration and the authority.
    struct Client {
        let place: ClientPlace
        /// The hops that the request has passed already, as Via has them; nil: none.
        var via: String?
    }

    init(snapshot: Snapshot, entry: HostEntry?, destination: Destination, client: Client) {
        self.snapshot = snapshot
        self.entry = entry
        self.destination = destination
        self.client = client
    }

    var authority: Authority { destination.authority }
    var target: UpstreamTarget { destination.target }
    var origin: Origin { destination.origin }
}

/// What the policy does with an authority.
enum Decision {
    case relay(Route)
    case tunnel(Route)
    case refuse(ProxyError)
}

/// What a client asks for.
enum Purpose {
    /// `CONNECT`, or an `https://` URL: TLS to the origin is the proxy's.
    case secure
    /// An `http://` URL.
    case plain
}

extension Worker {
    /// - Parameter authority: canonical.
    func decide(_ authority: Authority, for purpose: Purpose, client: Route.Client) -> Decision {
        let decision = HostDecision(authority.host, port: authority.port, in: snapshot)
        let layer: UpstreamTarget.Layer
        switch decision.layer(for: purpose, to: ServerName(host: authority.host), upstream: configuration.upstream) {
        case .success(let allowed): layer = allowed
        case .failure(.denied): return .refuse(.denied(host: authority.description, entry: decision.entry?.location))
        case .failure(.plainToPinned(let entry)):
            return .refuse(.plainToPinnedHost(authority.description, entry: entry.location))
        }
        let pseudonym = snapshot.proxy.via ? context.loops.pseudonym(for: authority) : nil
        let target = UpstreamTarget(
            host: authority.host, port: authority.port, layer: layer, upstream: configuration.upstream,
            client: client.place, via: via(pseudonym, after: client.via), tls: decision.tls)
        let route = Route(
            snapshot: snapshot, entry: decision.entry,
            destination: Destination(
                authority: authority, target: target, origin: session.pool.origin(for: target.key),
                timeouts: snapshot.timeouts, limits: snapshot.limits, via: pseudonym,
                source: decision.entry?.source),
            client: client)
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
