package import PinproxyEventLoop

/// Waits for written bytes to arrive before a reset, which would destroy them: poll it every ``interval``.
package struct DeliveryWatch {
    /// Nanoseconds between polls.
    package static let interval: UInt64 = 50_000_000

    private var left = Int.max
    private var lastProgress: MonotonicTime

    package init(at now: MonotonicTime) {
        lastProgress = now
    }

    /// Whether to reset now: all has arrived, or nothing more has for `patience` nanoseconds.
    package mutating func isOver(on stream: ByteStream, at now: MonotonicTime, patience: UInt64) -> Bool {
        let unconfirmed = stream.unconfirmed
        if unconfirmed < left { lastProgress = now }
        left = unconfirmed
        return unconfirmed == 0 || now - lastProgress > patience
    }
}
