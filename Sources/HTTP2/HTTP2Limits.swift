/// Bounds of a session. Honest peers stay far below them (see ``FloodGuard``).
package struct HTTP2Limits: Sendable {
    /// Pending events, and bytes of heads, at which `receive` stops. One more frame may exceed them.
    package var events = 512
    package var headText = 256 << 10
    /// Acknowledgements of SETTINGS and PING that may be queued.
    package var unreadAcknowledgements = 1000
    /// Queued frames above which `isClogged` is true.
    package var queuedFrames = 500
    /// Bytes of a sent head.
    package var sentHead = 1 << 20
    /// Largest receive windows, in bytes.
    package var streamWindow = 4 << 20
    package var connectionWindow = 16 << 20
    package var floods = FloodLimits()

    package init() {}
}

/// Rates of frames that cost the receiver more than the sender: a burst, and so many per second.
package struct FloodLimits: Sendable {
    package struct Rate: Sendable, Equatable {
        package var burst: Int
        package var perSecond: Int

        package init(_ burst: Int, perSecond: Int) {
            self.burst = burst
            self.perSecond = perSecond
        }
    }

    /// RST_STREAM frames (rapid reset, CVE-2023-44487). Each stream that ends normally earns one.
    package var resets = Rate(500, perSecond: 100)
    /// Streams that the session resets for a fault of the peer (MadeYouReset, CVE-2025-8671).
    package var faults = Rate(100, perSecond: 10)
    /// SETTINGS and GOAWAY frames.
    package var settings = Rate(100, perSecond: 10)
    /// PING frames, acknowledgements included. Each DATA frame in either direction earns one: gRPC measures with PINGs.
    package var pings = Rate(1000, perSecond: 100)
    /// WINDOW_UPDATE frames. Each sent DATA frame earns four, each request two.
    package var windowUpdates = Rate(1000, perSecond: 100)
    /// Empty DATA frames without END_STREAM.
    package var emptyData = Rate(100, perSecond: 10)
    /// PRIORITY and PRIORITY_UPDATE frames. Each request earns two.
    package var priorities = Rate(500, perSecond: 100)
    /// Frames of unknown types, and heads for closed streams. DATA for closed streams is bounded by flow control.
    package var ignored = Rate(500, perSecond: 100)
    /// CONTINUATION frames of one head, and its compressed bytes.
    package var continuations = 8
    package var headBlock = 128 << 10

    package init() {}
}
