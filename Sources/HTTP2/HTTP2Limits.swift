/// What a session takes of its peer, and keeps for it, at most. Honest peers stay far below (see ``FloodGuard``).
package struct HTTP2Limits: Sendable {
    /// Events and bytes of heads after which `receive` stops until the events are taken. One more frame's may be added.
    package var events = 512
    package var headText = 256 << 10
    /// Acknowledgements of SETTINGS and PING that a peer may leave unread.
    package var unreadAcknowledgements = 1000
    /// Frames queued for a peer that doesn't read, from which on `isClogged` tells to read nothing more from it.
    package var queuedFrames = 500
    /// Bytes of the heads that are sent.
    package var sentHead = 1 << 20
    /// Windows that ``WindowEstimator`` grows to: a stream's and the connection's.
    package var streamWindow = 4 << 20
    package var connectionWindow = 16 << 20
    package var floods = FloodLimits()

    package init() {}
}

/// How often a peer may do what costs more here than there: at once, and each second after that.
package struct FloodLimits: Sendable {
    package struct Rate: Sendable, Equatable {
        package var burst: Int
        package var perSecond: Int

        package init(_ burst: Int, perSecond: Int) {
            self.burst = burst
            self.perSecond = perSecond
        }
    }

    /// RST_STREAM frames (rapid reset, CVE-2023-44487). A stream that ends well pays for one.
    package var resets = Rate(500, perSecond: 100)
    /// Streams reset here for a fault of the peer's (MadeYouReset, CVE-2025-8671).
    package var faults = Rate(100, perSecond: 10)
    /// SETTINGS frames, and GOAWAY frames.
    package var settings = Rate(100, perSecond: 10)
    /// PING frames, answers included. Each DATA frame in either direction pays for one, since peers measure by them.
    package var pings = Rate(1000, perSecond: 100)
    /// WINDOW_UPDATE frames. Each DATA frame that is sent pays for four, each request for two.
    package var windowUpdates = Rate(1000, perSecond: 100)
    /// Empty DATA frames that don't end their stream.
    package var emptyData = Rate(100, perSecond: 10)
    /// PRIORITY and PRIORITY_UPDATE frames. Each request pays for two.
    package var priorities = Rate(500, perSecond: 100)
    /// Frames of unknown types, and those that are ignored, as for closed streams; not DATA, which is bounded by windows.
    package var ignored = Rate(500, perSecond: 100)
    /// CONTINUATION frames of one head, and bytes of it as it is compressed.
    package var continuations = 8
    package var headBlock = 128 << 10

    package init() {}
}
