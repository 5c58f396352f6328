// Session: AFURLSessionManager's part: the connections to origins, their pool, and the rules for them.

package import TLS
import Transport

/// How long each thing that waits may wait (`timeouts` in pinproxy.yaml).
package struct Timeouts: Sendable, Equatable {
    package var connect: Duration = .seconds(10)
    package var tlsHandshake: Duration = .seconds(10)
    /// A client connection on which no exchange is under way, and any side that stopped moving bytes.
    package var idleClient: Duration = .seconds(75)
    package var idleUpstream: Duration = .seconds(60)
    /// From the end of the request to the first byte of the response.
    package var firstByte: Duration = .seconds(60)
    /// What exchanges in flight get after SIGTERM.
    package var drain: Duration = .seconds(30)
    /// How long a tunnel must be silent then to be ended.
    package var drainTunnels: Duration = .seconds(2)
    /// What is in flight gets that much to finish after the next proxy has taken over.
    package var handover: Duration = .seconds(600)

    package init() {}
}

/// What may grow, and how far (`limits` in pinproxy.yaml).
package struct Limits: Sendable, Equatable {
    package var requestHead = 64 << 10
    package var responseHead = 256 << 10
    package var clients = 10_000
    /// Bytes of a body that are held back where a rule has to read it.
    package var inspectedBody = 8 << 20
    /// Bytes of a request's body that are kept, to send it again.
    package var replayBody = 1 << 20
    /// Of a body that is on its way; nil: it may be as slow as it likes.
    package var minimumRate: MinimumRate? = MinimumRate(bytes: 1 << 10, within: .seconds(300))
    /// Bytes of all bodies that are kept at one time.
    package var bodies = BodyBudget.usualLimit

    package init() {}
}

/// How origins are reached (`upstream` in pinproxy.yaml).
package struct UpstreamSettings: Sendable {
    /// What chains must lead to.
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
    /// Whole nanoseconds, as the loop's deadlines count them; negative ones are 0.
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }
}
