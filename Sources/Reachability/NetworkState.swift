internal import CMNL
import EventLoop
internal import Glibc

/// What the kernel says of the network at one moment. A value: statuses follow from it without asking anybody.
struct NetworkState: Equatable {
    /// The kernel's answer to the question how packets to an address would go.
    enum RouteAnswer: Equatable {
        case route(RouteRecord)
        /// There is no way, by this `errno`.
        case failed(CInt)
    }

    var links: [CInt: LinkRecord] = [:]
    var addresses: [AddressRecord] = []
    var routes: [IPAddress: RouteAnswer] = [:]
    /// Those that sysfs has of the links that routes lead over, and of the links below these.
    var marks: [CInt: LinkMarks] = [:]

    /// One address of each family that stands for the internet, of a.root-servers.net. The kernel is only asked for its
    /// route, which respects rules (ip-rule(8)), tables and halves of a default route, and nothing is sent.
    static let internet = ["198.41.0.4", "2001:503:ba3e::2:30"].compactMap { IPAddress($0) }

    var machine: ReachabilityStatus {
        let findings = Self.internet.map { finding(for: $0) }
        let status = Self.status(of: findings)
        guard case .notReachable(let reason) = status else { return status }
        if !links.values.contains(where: { $0.isUsable && !$0.isLoopback }) { return .notReachable(.noLink) }
        if !hasUsableAddress { return .notReachable(.noAddress) }
        return .notReachable(reason == .noRoute ? .noDefaultRoute : reason)
    }

    /// The status of what has these addresses; they must have been asked about. Unknown if there is none.
    func status(of addresses: [IPAddress]) -> ReachabilityStatus {
        Self.status(of: addresses.map { finding(for: $0) })
    }

    /// The links that these addresses' routes lead over, and those below.
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
        // Nobody knows which of the paths a connection will take: one that may be cellular is.
        if let index = paths.firstIndex(where: { $0.link.kind == .cellular }) { paths.swapAt(0, index) }
        guard paths.isEmpty else { return .reachable(paths) }
        // What is special says more than that there is no route, which is how the family looks that isn't used.
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
        // With no address but a link-local one nothing beyond the link would find the way back.
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

    /// What is stacked on another link (VLAN, MACVLAN) is of that one's kind.
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
    /// An IPv4 address as it is, of an IPv6 one the /64 network.
    fileprivate var network: String {
        guard isIPv6, let network = IPAddress(bytes: bytes.prefix(8) + [UInt8](repeating: 0, count: 8)) else {
            return description
        }
        return "\(network)/64"
    }
}
