package import Reachability

/// Whether upstream connections can be made, and over which kind of link, as the main loop tells the workers.
package struct NetworkOutlook: Sendable, Equatable {
    private var machine = ReachabilityStatus.unknown
    /// Of hosts that are followed themselves, by name or address as ``OriginKey/host`` has them.
    private var hosts: [String: ReachabilityStatus] = [:]
    /// Some host may go over a cellular link.
    private(set) var isViaWWAN = false

    /// Nothing is known, and nothing refused.
    package init() {}

    package init(_ statuses: [(target: ReachabilityTarget, status: ReachabilityStatus)]) {
        for (target, status) in statuses {
            if target == .any { machine = status } else { hosts["\(target)"] = status }
            if status.isReachableViaWWAN { isViaWWAN = true }
        }
    }

    /// Why no connection to the host can be made now, this machine's own addresses apart.
    ///
    /// A followed host is judged by its own status; whether its name exists, the look-up finds out. Others need total
    /// isolation: without a default route local networks can be reached, and the rest fails at once.
    func obstacle(to host: String) -> UnreachableReason? {
        switch hosts[host] {
        case .reachable?, .notReachable(.noSuchHost)?: return nil
        case .notReachable(let reason)?: return reason
        case .unknown?, nil: break
        }
        guard case .notReachable(let reason) = machine, reason.isIsolation else { return nil }
        return reason
    }

    /// Why the internet can't be reached; nil: it can, or that isn't known.
    var cutOff: UnreachableReason? {
        if case .notReachable(let reason) = machine { reason } else { nil }
    }

    /// The cellular link over which a connection to the host may go; nil: it goes over others, or isn't known to.
    func cellularLink(to host: String) -> String? {
        var status = hosts[host] ?? .unknown
        if status == .unknown { status = machine }
        return status.isReachableViaWWAN ? status.path?.link.name : nil
    }
}

/// The outlook that a worker's connections are made under.
package final class NetworkView {
    package internal(set) var outlook = NetworkOutlook()

    package init() {}
}
