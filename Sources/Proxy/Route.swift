import Configuration
import HTTPWire
import Security
import Session
import TLS

/// Where the requests for one authority go under one snapshot, and what decided it.
final class Route {
    let snapshot: Snapshot
    let authority: Authority
    /// What decided; nil: the defaults.
    let entry: HostEntry?
    let target: UpstreamTarget
    let origin: Origin

    init(snapshot: Snapshot, authority: Authority, entry: HostEntry?, target: UpstreamTarget, origin: Origin) {
        self.snapshot = snapshot
        self.authority = authority
        self.entry = entry
        self.target = target
        self.origin = origin
    }

    /// The port that URLs and Host leave out.
    var defaultPort: UInt16 {
        if case .plain = target.layer { 80 } else { 443 }
    }

    /// A parent proxy is asked for `http://` URLs with the whole URL, without a tunnel.
    var sendsAbsoluteTarget: Bool { parent != nil }
    /// The parent's credentials, where the request itself goes to it.
    var parentAuthorization: String? { parent?.authorization }

    private var parent: ParentProxy? {
        if case .plain = target.layer { target.key.parent } else { nil }
    }
}

/// What the policy does with an authority.
enum Decision {
    case relay(Route)
    case tunnel(Route)
    case refuse(ProxyError)
}

extension Worker {
    /// What a client asks for.
    enum Purpose {
        /// `CONNECT`, or an `https://` URL: TLS to the origin is the proxy's.
        case secure
        /// An `http://` URL.
        case plain
    }

    func decide(_ authority: Authority, for purpose: Purpose) -> Decision {
        let entry = snapshot.entry(for: authority.host, port: authority.port)
        let action = entry?.action ?? snapshot.defaultAction
        let layer: UpstreamTarget.Layer
        switch (action, purpose) {
        case (.deny, _):
            return .refuse(.denied(host: authority.description, entry: entry?.location))
        case (.tunnel, .secure): layer = .tunnel
        case (_, .plain):
            if let entry, entry.policy.mode != .none {
                return .refuse(.plainToPinnedHost(authority.description, entry: entry.location))
            }
            layer = .plain
        case (.intercept, .secure):
            layer = .tls(policy(entry), configuration.upstream.anchors, ServerName(host: authority.host))
        case (.verifyTunnel, .secure):
            layer = .verifiedTunnel(
                policy(entry), configuration.upstream.anchors, ServerName(host: authority.host))
        }
        let target = UpstreamTarget(
            host: authority.host, port: authority.port, layer: layer, upstream: configuration.upstream,
            tls: entry == nil ? snapshot.defaultTLS : entry?.tls)
        let route = Route(
            snapshot: snapshot, authority: authority, entry: entry, target: target,
            origin: pool.origin(for: target.key))
        return switch layer {
        case .tunnel, .verifiedTunnel: .tunnel(route)
        case .plain, .tls: .relay(route)
        }
    }

    private func policy(_ entry: HostEntry?) -> SecurityPolicy { entry?.policy ?? snapshot.defaultPolicy }
}
