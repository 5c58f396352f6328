package import HTTPWire

/// Where the requests for one authority go under one configuration, and what holds for them on the way. An
/// exchange keeps it through a reload.
package final class Destination {
    package let authority: Authority
    package let target: UpstreamTarget
    package let origin: Origin
    package let timeouts: Timeouts
    package let limits: Limits
    /// Whether the proxy records itself in Via.
    package let via: Bool
    /// Where it is written what holds for the host; nil: in the defaults.
    package let source: PolicySource?
    /// Changes to a request's head, besides what every hop owes.
    package let edits: HeadEdits

    package init(
        authority: Authority, target: UpstreamTarget, origin: Origin, timeouts: Timeouts, limits: Limits, via: Bool,
        source: PolicySource? = nil
    ) {
        self.authority = authority
        self.target = target
        self.origin = origin
        self.timeouts = timeouts
        self.limits = limits
        self.via = via
        self.source = source
        var edits = HeadEdits()
        if case .plain = target.layer, let authorization = target.key.parent?.authorization {
            edits.append(.set(authorization), "Proxy-Authorization")
        }
        self.edits = edits
    }

    /// The port that URLs and Host leave out.
    package var defaultPort: UInt16 {
        if case .plain = target.layer { 80 } else { 443 }
    }

    /// A parent proxy is asked for `http://` URLs with the whole URL, without a tunnel.
    package var targetRewrite: TargetRewrite {
        if case .plain = target.layer, target.key.parent != nil { .asReceived } else { .originForm }
    }
}

/// Where a configuration says what holds for a host, for people.
package struct PolicySource: Sendable, Hashable {
    /// As it was written, e.g. `*.example.com`.
    package let pattern: String
    /// `FILE:LINE`.
    package let location: String

    package init(pattern: String, location: String) {
        self.pattern = pattern
        self.location = location
    }
}
