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
    /// Changes to a request's head, besides what every hop owes.
    package let edits: HeadEdits

    package init(
        authority: Authority, target: UpstreamTarget, origin: Origin, timeouts: Timeouts, limits: Limits, via: Bool
    ) {
        self.authority = authority
        self.target = target
        self.origin = origin
        self.timeouts = timeouts
        self.limits = limits
        self.via = via
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
