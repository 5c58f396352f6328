/// How large a receive window has to be, so that it never holds up a peer: the bytes that arrive within a round trip
/// (bandwidth-delay product), measured by a PING sent when data arrives, as gRPC does. When they fill two thirds of the
/// window, the window doubles.
///
/// While the window suffices, it is measured less and less often.
package struct WindowEstimator: Sendable {
    /// What a PING carries that this value sent.
    package static let opaque: UInt64 = 0x7069_6e70_726f_7879

    package private(set) var window: Int
    private let most: Int
    /// Since the PING was sent; nil: none is on its way.
    private var sample: Int?
    private var pause: UInt64 = 0
    private var nextAt: UInt64 = 0

    /// The pause between two measurements that have shown nothing new, at first and at most, in nanoseconds.
    private static let pauses = (first: UInt64(10_000_000), most: UInt64(2_000_000_000))

    package init(window: Int, most: Int) {
        self.window = window
        self.most = max(window, most)
    }

    /// Bytes of DATA have arrived. True: send a PING with ``opaque``.
    package mutating func received(_ bytes: Int, at now: UInt64) -> Bool {
        if let sample {
            self.sample = sample + bytes
            return false
        }
        guard window < most, now >= nextAt else { return false }
        sample = bytes
        return true
    }

    /// The PING's answer has arrived; returns the new window, if it grows.
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
