/// Sizes a receive window by the bandwidth-delay product, as gRPC does: a PING is sent when data arrives, and the bytes
/// until its answer are counted. If they fill two thirds of the window, the window doubles.
///
/// While the window suffices, measurements become rarer.
package struct WindowEstimator: Sendable {
    /// The opaque data of its PINGs.
    package static let opaque: UInt64 = 0x7069_6e70_726f_7879

    package private(set) var window: Int
    private let most: Int
    /// Bytes since the PING; nil if none is in flight.
    private var sample: Int?
    private var pause: UInt64 = 0
    private var nextAt: UInt64 = 0

    /// Pause after a measurement without growth, in nanoseconds; it doubles.
    private static let pauses = (first: UInt64(10_000_000), most: UInt64(2_000_000_000))

    package init(window: Int, most: Int) {
        self.window = window
        self.most = max(window, most)
    }

    /// Counts received DATA bytes. True: send a PING with ``opaque``.
    package mutating func received(_ bytes: Int, at now: UInt64) -> Bool {
        if let sample {
            self.sample = sample + bytes
            return false
        }
        guard window < most, now >= nextAt else { return false }
        sample = bytes
        return true
    }

    /// The PING was answered; returns the new window if it grows.
    package mutating func answered(at now: UInt64) -> Int? {
        guard let sample else { return nil }
        self.sample = nil
        if sample * 3 >= window * 2 {
            window = min(2 * window, most)
            pause = 0
            nextAt = now
            return window
        }
        pause = pause == 0 ? Self.pauses.first : min(2 * pause, Self.pauses.most)
        nextAt = now + pause
        return nil
    }
}
