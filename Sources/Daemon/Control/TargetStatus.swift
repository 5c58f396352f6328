package import Reachability

/// A target of `reachability` and its present status, as `GET /status` has it.
package struct TargetStatus: Codable, Sendable, Equatable {
    /// `any`, an address or a name.
    package let target: String
    /// As in the log: `via-wired`, `not-reachable`, `unknown`, …
    package let status: String
    package let reason: String?
    /// The interface by which the target is reached, and its kind.
    package let link: String?
    package let kind: String?

    package init(_ target: ReachabilityTarget, _ status: ReachabilityStatus) {
        self.target = "\(target)"
        self.status = "\(status)"
        reason = status.reason.isEmpty ? nil : status.reason
        link = status.path?.link.name
        kind = status.path?.link.kind.rawValue
    }

    /// `via-wired (eth0, route via 192.0.2.1 from 192.0.2.7)`
    package var text: String {
        let details = [link, reason].compactMap(\.self)
        return details.isEmpty ? status : "\(status) (\(details.joined(separator: ", ")))"
    }
}

/// One change of a target's status.
package struct NetworkChange: Codable, Sendable, Equatable {
    /// Milliseconds since 1970.
    package let time: Int64
    package let target: String
    package let from: String
    package let to: String
    package let reason: String
}
