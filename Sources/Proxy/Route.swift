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

    init(snapshot: Snapshot, entry: HostEntry?, destination: Destination) {
        self.snapshot = snapshot
        self.entry = entry
        self.destination = destination
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
    func decide(_ authority: Authority, for purpose: Purpose) -> Decision {
        let decision = HostDecision(authority.host, port: authority.port, in: snapshot)
        let layer: UpstreamTarget.Layer
        switch decision.layer(for: purpose, to: ServerName(host: authority.host), upstream: configuration.upstream) {
        case .success(let allowed): layer = allowed
        case .failure(.denied): return .refuse(.denied(host: authority.description, entry: decision.entry?.location))
        case .failure(.plainToPinned(let entry)):
            return .refuse(.plainToPinnedHost(authority.description, entry: entry.location))
        }
        let target = UpstreamTarget(
            host: authority.host, port: authority.port, layer: layer, upstream: configuration.upstream,
            tls: decision.tls)
        let route = Route(
            snapshot: snapshot, entry: decision.entry,
            destination: Destination(
                authority: authority, target: target, origin: session.pool.origin(for: target.key),
                timeouts: snapshot.timeouts, limits: snapshot.limits, via: snapshot.proxy.via,
                source: decision.entry?.source))
        return switch layer {
        case .tunnel, .verifiedTunnel: .tunnel(route)
        case .plain, .tls: .relay(route)
        }
    }
}
