package import PinproxyReachability

/// Whether upstream connections can be made, and the kind of link. The main loop passes it to the workers.
package struct NetworkOutlook: Sendable, Equatable {
    private var machine = ReachabilityStatus.unknown
    /// Status of individually watched hosts, by ``OriginKey/host``.
    private var hosts: [String: ReachabilityStatus] = [:]
    private(set) var isViaWWAN = false

    package init() {}

    package init(_ statuses: [(target: ReachabilityTarget, status: ReachabilityStatus)]) {
        for (target, status) in statuses {
            if target == .any { machine = status } else { hosts["\(target)"] = status }
            if status.isReachableViaWWAN { isViaWWAN = true }
        }
    }

    /// Why no connection to the host can be made now, except to this machine's own addresses. A watched host follows
    /// its own status. Other hosts need total isolation, since local networks can be reached without a default route.
    func obstacle(to host: String) -> UnreachableReason? {
        switch hosts[host] {
        case .reachable?, .notReachable(.noSuchHost)?: return nil
        case .notReachable(let reason)?: return reason
        case .unknown?, nil: break
        }
        guard case .notReachable(let reason) = machine, reason.isIsolation else { return nil }
        return reason
    }

    /// Why the internet is unreachable; nil: it is reachable, or unknown.
    var cutOff: UnreachableReason? {
        if case .notReachable(let reason) = machine { reason } else { nil }
    }

    /// The cellular link that a connection to the host may use; nil: none is known.
    func cellularLink(to host: String) -> String? {
        var status = hosts[host] ?? .unknown
        if status == .unknown { status = machine }
        return status.isReachableViaWWAN ? status.path?.link.name : nil
    }
}

package final class NetworkView {
    package internal(set) var outlook = NetworkOutlook()

    package init() {}
}
