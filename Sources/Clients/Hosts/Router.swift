package import PinproxyConfiguration
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySecurity
package import PinproxySession
package import PinproxyTLS

/// Decides where one worker's requests go, by the configuration in force.
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
        switch decision.layer(
            for: purpose, to: ServerName(host: authority.host), upstream: configuration.upstream, asker: client.asker)
        {
        case .success(let allowed): layer = allowed
        case .failure(.denied): return .refuse(.denied(host: authority.description, entry: decision.denier))
        case .failure(.notAdmitted(let peer, let entry, let clients)):
            return .refuse(.clientNotAdmitted(ClientObjection(peer, entry, clients, host: authority.description)))
        case .failure(.plainToPinned(let entry)):
            return .refuse(.plainToPinnedHost(authority.description, entry: entry.location))
        }
        let pseudonym = snapshot.proxy.via ? loops.pseudonym(for: authority) : nil
        let target = UpstreamTarget(
            host: authority.host, port: authority.port, layer: layer,
            upstream: decision.upstream ?? configuration.upstream,
            client: client.place, via: via(pseudonym, after: client.via), tls: decision.tls,
            protocols: decision.http.protocols, ping: decision.http.ping)
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

    /// The Via of a CONNECT to the parent proxy, which alone detects loops of CONNECTs.
    private func via(_ pseudonym: ViaPseudonym?, after others: String?) -> String? {
        guard configuration.upstream.parent != nil, let pseudonym else { return others }
        return (others.map { "\($0), " } ?? "") + "1.1 \(pseudonym)"
    }
}

/// The route of requests for one authority under one snapshot.
final class Route {
    let snapshot: Snapshot
    /// What decided; nil: the defaults.
    let entry: HostEntry?
    let destination: Destination
    /// Nil: none.
    let rules: RuleLayers?
    let slot: Int
    let client: Client

    /// Properties of a client that its route depends on.
    struct Client {
        let place: ClientPlace
        let asker: Asker
        /// The request's Via; nil: none.
        var via: String?
    }

    init(snapshot: Snapshot, entry: HostEntry?, destination: Destination, slot: Int, client: Client) {
        self.slot = slot
        self.snapshot = snapshot
        self.entry = entry
        rules = entry == nil ? snapshot.defaultRules : entry?.rules
        self.destination = destination
        self.client = client
    }

    var authority: Authority { destination.authority }
    var target: UpstreamTarget { destination.target }
    var origin: Origin { destination.origin }

    /// Whether it serves a client that speaks TLS.
    /// - Parameter asked: the CONNECT's authority, as the client wrote it.
    func servesTLS(for asked: Authority) -> Bool {
        guard case .tls = target.layer else { return false }
        return asked.canonical == authority
    }
}

/// The policy's decision about an authority.
enum Decision {
    case relay(Route)
    case tunnel(Route)
    case refuse(ProxyError)
}

/// A configuration's decision about a host, for the proxy and the commands that explain it.
package struct HostDecision {
    /// Nil: the defaults decide.
    let entry: HostEntry?
    /// Why every host is denied; nil: they aren't.
    private let denial: String?
    let action: HostAction
    let policy: SecurityPolicy
    /// TLS settings that differ from the defaults.
    let tls: ClientTLS?
    /// For test hosts; nil: the configuration's.
    let upstream: UpstreamSettings?
    /// From `session`: how connections that exchanges share are made.
    let http: (protocols: [HTTPProtocol], ping: Duration?)

    package enum Refusal: Error {
        case denied
        case notAdmitted(ClientPeer, HostEntry, EntryClients)
        /// Plain HTTP can't be pinned.
        case plainToPinned(HostEntry)
    }

    /// - Parameter testHosts: nil: their names are like any other.
    package init(_ host: String, port: UInt16, in snapshot: Snapshot, testHosts: TestHosts? = nil) {
        if let testHosts, let own = testHosts.entry(for: host) {
            (entry, action, policy, tls, upstream) = (own, own.action, own.policy, nil, testHosts.upstream)
            denial = nil
            http = (HTTPProtocol.usual, nil)
            return
        }
        upstream = nil
        entry = snapshot.entry(for: host, port: port)
        denial = snapshot.denial
        action = entry?.action ?? snapshot.defaultAction
        policy = entry?.policy ?? snapshot.defaultPolicy
        let session = (entry == nil ? snapshot.defaultRules : entry?.rules)?.rules(.none).session
        http = (session?.http ?? HTTPProtocol.usual, session?.ping)
        tls = entry == nil ? snapshot.defaultTLS : entry?.tls
    }

    /// Whether clients of a host may be shown a certificate of the local authority.
    /// - Parameter host: as an ``Authority`` has it. No client can ask for any other.
    package static func intercepts(_ host: String, port: UInt16, in snapshot: Snapshot) -> Bool {
        let text = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        guard case .success(let asked) = Authority.parse(text, defaultPort: nil), asked.host == host else {
            return false
        }
        let decisive = asked.canonical.host
        return TestHost(decisive) != nil || HostDecision(decisive, port: port, in: snapshot).action == .intercept
    }

    /// Who denies the host, where it is denied; nil: the defaults.
    var denier: String? {
        entry?.location ?? denial.map { "policy in pinproxy.yaml (on_expiry: deny): \($0)" }
    }

    func refusal(of asker: Asker) -> Refusal? {
        guard action != .deny, let entry, let clients = entry.clients, case .client(let peer) = asker,
            !peer.isAdmitted(by: clients)
        else { return nil }
        return .notAdmitted(peer, entry, clients)
    }

    /// The protocol layer of a connection to it.
    /// - Parameter upstream: without the local authority among the anchors.
    package func layer(
        for purpose: Purpose, to name: ServerName, upstream: UpstreamSettings, asker: Asker
    ) -> Result<UpstreamTarget.Layer, Refusal> {
        if let refusal = refusal(of: asker) { return .failure(refusal) }
        let anchors = (self.upstream ?? upstream).anchors
        return switch (action, purpose) {
        case (.deny, _): .failure(.denied)
        case (.tunnel, .secure): .success(.tunnel)
        case (_, .plain):
            if let entry, entry.policy.mode != .none { .failure(.plainToPinned(entry)) } else { .success(.plain) }
        case (.intercept, .secure): .success(.tls(policy, anchors, name))
        case (.verifyTunnel, .secure): .success(.verifiedTunnel(policy, anchors, name))
        }
    }
}

extension HostEntry {
    var source: PolicySource { PolicySource(pattern: pattern, file: file, line: line) }
}
