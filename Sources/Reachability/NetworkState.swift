internal import CPinproxyMNL
internal import Glibc
import PinproxyEventLoop

/// The network at one moment, by the kernel. A value, which determines statuses.
struct NetworkState: Equatable {
    /// The kernel's answer about a route.
    enum RouteAnswer: Equatable {
        case route(RouteRecord)
        /// No route, by this `errno`.
        case failed(CInt)
    }

    var links: [CInt: LinkRecord] = [:]
    var addresses: [AddressRecord] = []
    var routes: [IPAddress: RouteAnswer] = [:]
    /// Marks of the links of routes, and of the links below these.
    var marks: [CInt: LinkMarks] = [:]

    /// The internet: a.root-servers.net. Only its route is looked up, with rules (ip-rule(8)); nothing is sent.
    static let internet = ["198.41.0.4", "2001:503:ba3e::2:30"].compactMap { IPAddress($0) }

    var machine: ReachabilityStatus {
        let findings = Self.internet.map { finding(for: $0) }
        let status = Self.status(of: findings)
        guard case .notReachable(let reason) = status else { return status }
        if !links.values.contains(where: { $0.isUsable && !$0.isLoopback }) { return .notReachable(.noLink) }
        if !hasUsableAddress { return .notReachable(.noAddress) }
        return .notReachable(reason == .noRoute ? .noDefaultRoute : reason)
    }

    /// The status of addresses with route look-ups; unknown without addresses.
    func status(of addresses: [IPAddress]) -> ReachabilityStatus {
        Self.status(of: addresses.map { finding(for: $0) })
    }

    /// The links of routes, and those below.
    func linksUsed() -> Set<CInt> {
        var used: Set<CInt> = []
        for case .route(let route) in routes.values {
            var next = route.link
            while let index = next, used.insert(index).inserted { next = links[index]?.lower }
        }
        return used
    }

    private var hasUsableAddress: Bool {
        addresses.contains { address in
            guard let link = links[address.link] else { return false }
            return address.isUsable && link.isUsable && !link.isLoopback
        }
    }

    private static func status(of findings: [Result<NetworkPath, Failure>]) -> ReachabilityStatus {
        var paths: [NetworkPath] = []
        for case .success(let path) in findings where !paths.contains(path) { paths.append(path) }
        // A connection may take any path: a cellular one counts.
        if let index = paths.firstIndex(where: { $0.link.kind == .cellular }) { paths.swapAt(0, index) }
        guard paths.isEmpty else { return .reachable(paths) }
        // Special reasons say more than `noRoute`, which an unused family has.
        let reasons = findings.compactMap { finding in
            if case .failure(let failure) = finding { failure.reason } else { nil }
        }
        guard let reason = reasons.first(where: { $0 != .noRoute }) ?? reasons.first else { return .unknown }
        return .notReachable(reason)
    }

    private struct Failure: Error {
        let reason: UnreachableReason
    }

    private func finding(for address: IPAddress) -> Result<NetworkPath, Failure> {
        if address.isLoopback { return .success(loopback) }
        guard let answer = routes[address] else { return .failure(Failure(reason: .noRoute)) }
        switch answer {
        case .failed(EACCES): return .failure(Failure(reason: .forbidden("prohibit")))
        case .failed(EINVAL): return .failure(Failure(reason: .forbidden("blackhole")))
        case .failed(EHOSTUNREACH): return .failure(Failure(reason: .forbidden("unreachable")))
        case .failed: return .failure(Failure(reason: .noRoute))
        case .route(let route): return finding(for: address, by: route)
        }
    }

    private func finding(for address: IPAddress, by route: RouteRecord) -> Result<NetworkPath, Failure> {
        switch Int(route.type) {
        case RTN_LOCAL, RTN_ANYCAST: return .success(loopback)
        case RTN_BLACKHOLE: return .failure(Failure(reason: .forbidden("blackhole")))
        case RTN_UNREACHABLE: return .failure(Failure(reason: .forbidden("unreachable")))
        case RTN_PROHIBIT: return .failure(Failure(reason: .forbidden("prohibit")))
        default: break
        }
        guard let link = route.link.flatMap({ links[$0] }) else { return .failure(Failure(reason: .noRoute)) }
        guard link.isUsable else { return .failure(Failure(reason: .linkDown(link.name))) }
        // From a link-local address nothing beyond the link is reachable.
        guard let source = route.source, !source.isLinkLocal || address.isLinkLocal || !address.isIPv6 else {
            return .failure(Failure(reason: .noAddress))
        }
        return .success(
            NetworkPath(
                link: named(link), gateway: route.gateway.map { "\($0)" }, source: source.network))
    }

    private var loopback: NetworkPath {
        let link = links.values.first(where: \.isLoopback)
        return NetworkPath(
            link: NetworkLink(name: link?.name ?? "lo", index: Int(link?.index ?? 1), kind: .loopback))
    }

    private func named(_ link: LinkRecord) -> NetworkLink {
        NetworkLink(name: link.name, index: Int(link.index), kind: kind(of: link, depth: 0))
    }

    /// A stacked link (VLAN, MACVLAN) has the kind of the one below.
    private func kind(of link: LinkRecord, depth: Int) -> LinkKind {
        let stacked: Set<String> = ["vlan", "macvlan", "ipvlan", "macsec"]
        if let kind = link.kind, stacked.contains(kind), depth < 8, let lower = link.lower.flatMap({ links[$0] }) {
            return self.kind(of: lower, depth: depth + 1)
        }
        return LinkKind(
            isLoopback: link.isLoopback, hardwareType: link.hardwareType, kind: link.kind,
            marks: marks[link.index] ?? LinkMarks())
    }
}

extension IPAddress {
    /// The IPv4 address, or the IPv6 /64 network.
    fileprivate var network: String {
        guard isIPv6, let network = IPAddress(bytes: bytes.prefix(8) + [UInt8](repeating: 0, count: 8)) else {
            return description
        }
        return "\(network)/64"
    }
}
