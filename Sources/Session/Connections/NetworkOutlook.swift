package import Reachability

/// What the system says of the network: whether upstream connections can be made at all, and over which kind of link.
/// A value that the daemon's main loop hands to the workers whenever it changes.
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

    /// Why no connection to the host can be made now, this machine's own addresses apart. Nil: one may be tried.
    ///
    /// A host that is followed itself is judged by its own status. That its name isn't known is for the look-up to say,
    /// which asks anew. For the others all must be cut off: without a default route the networks that this machine is in
    /// can still be reached, and what can't be fails at once by itself.
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
