// Reachability, as AFNetworkReachabilityManager's: the kernel reports by rtnetlink, and nothing is sent.

/// Whether a target can be reached, and how.
///
/// AFNetworking's four statuses: unknown (−1), not reachable (0), via WWAN (1, ``isReachableViaWWAN``), via WiFi (2,
/// ``isReachableViaWiFi``: any link that isn't cellular; ``NetworkLink/kind`` names it).
///
/// "Reachable" says that the kernel has a route over a link that carries, and an address to send from. It doesn't say
/// that anybody answers.
public enum ReachabilityStatus: Sendable, Hashable {
    /// Not known: monitoring hasn't begun, or a host's addresses can't be looked up at the moment.
    case unknown
    /// It can't be reached, and why.
    case notReachable(UnreachableReason)
    /// The first path is the main one; others serve the other family or a host's other addresses. Never empty.
    case reachable([NetworkPath])

    /// The main path; nil: not reachable.
    public var path: NetworkPath? {
        if case .reachable(let paths) = self { paths.first } else { nil }
    }

    /// Whether it is reachable over any link.
    public var isReachable: Bool { path != nil }
    /// Whether it is reachable, and a connection may go over a cellular link.
    public var isReachableViaWWAN: Bool { path?.link.kind == .cellular }
    /// Whether it is reachable over WiFi or another link that isn't cellular.
    public var isReachableViaWiFi: Bool { isReachable && !isReachableViaWWAN }

    /// Whether `other` is no change of status: another reason for being unreachable, or a further path.
    package func covers(_ other: ReachabilityStatus) -> Bool {
        switch (self, other) {
        case (.unknown, .unknown), (.notReachable, .notReachable): true
        case (.reachable(let paths), .reachable(let others)):
            paths.first?.link == others.first?.link && paths.allSatisfy(others.contains)
        default: false
        }
    }
}

extension ReachabilityStatus: CustomStringConvertible {
    /// A word for logs: `unknown`, `not-reachable`, `via-wwan`, `via-wireless`, `via-wired`, …
    public var description: String {
        switch self {
        case .unknown: "unknown"
        case .notReachable: "not-reachable"
        case .reachable: isReachableViaWWAN ? "via-wwan" : "via-\(path?.link.kind.rawValue ?? "other")"
        }
    }

    /// One line: `no default route`, `route via 192.0.2.1 from 192.0.2.7`; empty: unknown.
    public var reason: String {
        switch self {
        case .unknown: ""
        case .notReachable(let reason): "\(reason)"
        case .reachable: path.map { "\($0)" } ?? ""
        }
    }
}

/// Why a target can't be reached.
public enum UnreachableReason: Sendable, Hashable, CustomStringConvertible {
    /// No link except loopback is up with a carrier.
    case noLink
    /// Links are up, but have only link-local addresses.
    case noAddress
    /// No route to the internet. The links' own networks may be reachable.
    case noDefaultRoute
    /// No route to the address.
    case noRoute
    /// The route's link, by name, is down or has no carrier.
    case linkDown(String)
    /// A route forbids it: `unreachable`, `blackhole` or `prohibit`, as ip-route(8) calls its type.
    case forbidden(String)
    /// The name has no address, in the resolver's words.
    case noSuchHost(String)

    public var description: String {
        switch self {
        case .noLink: "no network link is up"
        case .noAddress: "no network link has an address"
        case .noDefaultRoute: "no default route"
        case .noRoute: "no route"
        case .linkDown(let name): "\(name) is down or has no carrier"
        case .forbidden(let type): "the route's type is \(type)"
        case .noSuchHost(let text): text
        }
    }

    /// Nothing outside this machine can be reached.
    package var isIsolation: Bool { self == .noLink || self == .noAddress }
}

/// The route of packets out of this machine.
public struct NetworkPath: Sendable, Hashable, CustomStringConvertible {
    /// The outgoing link.
    public let link: NetworkLink
    /// The router's address; nil: the target is in the link's own network.
    public let gateway: String?
    /// The source address; for IPv6 its /64 network, within which privacy addresses change (RFC 8981). Nil on loopback.
    public let source: String?

    package init(link: NetworkLink, gateway: String? = nil, source: String? = nil) {
        self.link = link
        self.gateway = gateway
        self.source = source
    }

    /// `route via 192.0.2.1 from 192.0.2.7`
    public var description: String {
        guard let source else { return "within this machine" }
        return (gateway.map { "route via \($0)" } ?? "directly connected") + " from \(source)"
    }
}

/// A network interface.
public struct NetworkLink: Sendable, Hashable {
    /// The name, as shown by ip-link(8).
    public let name: String
    /// The kernel's number.
    public let index: Int
    /// The kind of link.
    public let kind: LinkKind

    package init(name: String, index: Int, kind: LinkKind) {
        self.name = name
        self.index = index
        self.kind = kind
    }
}

/// The kind of a link, by the kernel.
public enum LinkKind: String, Sendable, Hashable, CaseIterable {
    /// Ethernet or similar.
    case wired
    /// WiFi.
    case wireless
    /// A modem: what AFNetworking calls WWAN.
    case cellular
    /// This machine itself.
    case loopback
    /// A VPN, or another link over links.
    case tunnel
    /// A switch within this machine, as containers have it.
    case bridge
    /// Another kind, or not known.
    case other
}

/// One change of a target's status.
public struct ReachabilityChange: Sendable, Hashable {
    /// The watched target.
    public let target: ReachabilityTarget
    /// The previous status.
    public let from: ReachabilityStatus
    /// The new status.
    public let to: ReachabilityStatus
}
