// Session: AFURLSessionManager's part: the connections to origins, their pool, and the rules for them.

package import PinproxyTLS
import PinproxyTransport

/// `timeouts` in pinproxy.yaml.
package struct Timeouts: Sendable, Equatable {
    package var connect: Duration = .seconds(10)
    package var tlsHandshake: Duration = .seconds(10)
    /// A client connection between exchanges, and any side that stopped moving bytes.
    package var idleClient: Duration = .seconds(75)
    package var idleUpstream: Duration = .seconds(60)
    /// From the end of the request to the first byte of the response.
    package var firstByte: Duration = .seconds(60)
    /// Time that exchanges in flight get after SIGTERM.
    package var drain: Duration = .seconds(30)
    /// Silence after which a tunnel is closed then.
    package var drainTunnels: Duration = .seconds(2)
    /// Time that exchanges in flight get after another proxy has taken over.
    package var handover: Duration = .seconds(600)

    package init() {}
}

/// `limits` in pinproxy.yaml.
package struct Limits: Sendable, Equatable {
    package var requestHead = 64 << 10
    package var responseHead = 256 << 10
    package var clients = 10_000
    /// Bytes of a body held back for a rule.
    package var inspectedBody = 8 << 20
    /// Bytes of a request's body kept for sending it again.
    package var replayBody = 1 << 20
    /// The minimum rate of a body in flight; nil: any rate.
    package var minimumRate: MinimumRate? = MinimumRate(bytes: 1 << 10, within: .seconds(300))
    /// Bytes of all bodies kept at a time.
    package var bodies = BodyBudget.usualLimit

    package init() {}
}

/// `upstream` in pinproxy.yaml.
package struct UpstreamSettings: Sendable {
    package var anchors: TrustAnchors
    package var parent: ParentProxy?
    package var addresses: AddressRules

    package init(anchors: TrustAnchors, parent: ParentProxy? = nil, addresses: AddressRules = AddressRules()) {
        self.anchors = anchors
        self.parent = parent
        self.addresses = addresses
    }
}

extension Duration {
    /// Whole nanoseconds; 0 for negative durations, and a century for longer ones.
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        return UInt64(min(seconds, Self.century)) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }

    private static let century: Int64 = 3_155_760_000
}
