package import PinproxyEventLoop

/// How much of a message must move within a time (`limits.minimum_rate`).
package struct MinimumRate: Sendable, Hashable, CustomStringConvertible {
    package let bytes: Int
    package let window: Duration

    package init(bytes: Int, within window: Duration) {
        self.bytes = bytes
        self.window = window
    }

    package var description: String { "\(bytes) bytes within \(window) (minimum_rate)" }
}

/// Times a body: it may neither stall for too long nor drip. The first movement opens a window; at its end the bytes
/// moved in it are compared with the rate. A window without a byte passes: `silence` limits pauses.
package struct BodyClock: Sendable, Equatable {
    package enum Verdict: Sendable, Equatable {
        case onTime(until: MonotonicTime)
        case silent
        case slow
    }

    private static let never = MonotonicTime(nanoseconds: .max)

    /// Nil: only silence is judged.
    package var rate: MinimumRate?
    private var silentAt = never
    private var windowEnd = never
    /// Bytes that had moved at the start of the window.
    private var base: UInt64?

    package init(rate: MinimumRate?) { self.rate = rate }

    package var isRunning: Bool { silentAt != Self.never }

    /// Call it when something moved, or may begin to. Returns when to call ``judge(at:moved:)``.
    /// - Parameters:
    ///   - moved: bytes since the message began; evaluated when the first window opens.
    ///   - silence: nanoseconds without a byte.
    @inline(__always)
    package mutating func keep(at now: MonotonicTime, silence: UInt64, moved: () -> UInt64) -> MonotonicTime {
        silentAt = now.advanced(byNanoseconds: silence)
        guard let rate else { return silentAt }
        if windowEnd == Self.never {
            if base == nil { base = moved() }
            windowEnd = now.advanced(byNanoseconds: rate.window.nanoseconds)
        }
        return min(silentAt, windowEnd)
    }

    /// - Parameter moved: bytes since the message began; fewer than before after a restart.
    package mutating func judge(at now: MonotonicTime, moved: UInt64) -> Verdict {
        if silentAt <= now { return .silent }
        if let rate, windowEnd <= now {
            let before = base ?? 0
            let fresh = moved >= before ? moved - before : moved
            windowEnd = Self.never
            base = moved
            if fresh > 0, fresh < UInt64(rate.bytes) { return .slow }
        }
        return .onTime(until: min(silentAt, windowEnd))
    }

    @inline(__always) package mutating func stop() {
        silentAt = Self.never
        windowEnd = Self.never
        base = nil
    }
}
