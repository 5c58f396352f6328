/// The kinds of floods (RFC 9113 section 10.5), by their names in the log and in metrics.
package enum HTTP2Flood: String, Error, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    case resets, faults, settings, pings, priorities, ignored, continuations, acknowledgements
    case windowUpdates = "window_updates"
    case emptyData = "empty_data"
    case headBlock = "head_block"

    package var description: String {
        switch self {
        case .resets: "too many streams are reset"
        case .faults: "too many streams are malformed"
        case .settings: "too many SETTINGS or GOAWAY frames"
        case .pings: "too many PING frames"
        case .windowUpdates: "too many WINDOW_UPDATE frames"
        case .emptyData: "too many empty DATA frames"
        case .priorities: "too many PRIORITY frames"
        case .ignored: "too many frames for closed streams, or of unknown types"
        case .continuations: "too many CONTINUATION frames in a head"
        case .headBlock: "a head that is too long as it is compressed"
        case .acknowledgements: "too many acknowledgements are not read"
        }
    }
}

/// Detects floods: frames that cost the receiver more than the sender. Useful work earns tokens for the frames that go
/// with it, so that h2load, browsers and gRPC stay far below the limits.
package struct FloodGuard: Sendable {
    private let limits: FloodLimits
    private var resets: TokenBucket
    private var faults: TokenBucket
    private var settings: TokenBucket
    private var pings: TokenBucket
    private var windowUpdates: TokenBucket
    private var emptyData: TokenBucket
    private var priorities: TokenBucket
    private var ignored: TokenBucket
    // The current head:
    private var continuations = 0
    private var headBlock = 0

    package init(_ limits: FloodLimits) {
        self.limits = limits
        resets = TokenBucket(limits.resets)
        faults = TokenBucket(limits.faults)
        settings = TokenBucket(limits.settings)
        pings = TokenBucket(limits.pings)
        windowUpdates = TokenBucket(limits.windowUpdates)
        emptyData = TokenBucket(limits.emptyData)
        priorities = TokenBucket(limits.priorities)
        ignored = TokenBucket(limits.ignored)
    }

    /// Counts a frame before it is decoded; returns the limit that it exceeds.
    package mutating func received(_ frame: FrameHeader, at now: UInt64) -> HTTP2Flood? {
        switch frame.kind {
        case .data:
            if frame.length == 0, !frame.hasFirstFlag { return emptyData.take(at: now) ? nil : .emptyData }
            pings.give(1)
        case .headers, .pushPromise:
            continuations = 0
            headBlock = frame.length
            windowUpdates.give(2)
            priorities.give(2)
            return headBlock > limits.headBlock ? .headBlock : nil
        case .continuation:
            continuations += 1
            headBlock += frame.length
            if continuations > limits.continuations { return .continuations }
            return headBlock > limits.headBlock ? .headBlock : nil
        case .reset: return resets.take(at: now) ? nil : .resets
        case .settings, .goAway: return settings.take(at: now) ? nil : .settings
        case .ping: return pings.take(at: now) ? nil : .pings
        case .windowUpdate: return windowUpdates.take(at: now) ? nil : .windowUpdates
        case .priority, .priorityUpdate: return priorities.take(at: now) ? nil : .priorities
        case .other: return ignored.take(at: now) ? nil : .ignored
        }
        return nil
    }

    /// Counts a DATA frame that was nothing but padding, and didn't end its stream.
    package mutating func receivedPadding(at now: UInt64) -> HTTP2Flood? { emptyData.take(at: now) ? nil : .emptyData }

    /// Counts a frame that had no effect, since its stream is closed.
    package mutating func ignored(_ frame: FrameHeader, at now: UInt64) -> HTTP2Flood? {
        guard frame.kind == .headers || frame.kind == .continuation, frame.endsHead else { return nil }
        return ignored.take(at: now) ? nil : .ignored
    }

    /// Counts a stream that the session reset for the peer's fault.
    package mutating func faulted(at now: UInt64) -> HTTP2Flood? { faults.take(at: now) ? nil : .faults }

    /// A stream ended without a reset.
    package mutating func streamEnded() { resets.give(1) }

    /// A request was sent, which the peer may reset.
    package mutating func openedStream() { resets.give(1) }

    /// A DATA frame was sent.
    package mutating func sentData() {
        pings.give(1)
        windowUpdates.give(4)
    }
}
