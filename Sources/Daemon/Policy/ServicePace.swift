import PinproxyConfiguration

/// Decides when a service is asked next: the server of the bundle, or a collector. After failures it is asked later and
/// later; machines that were started together spread out.
struct ServicePace {
    static let shortest: Duration = .seconds(10)

    private let interval: Duration
    private let longest: Duration
    private(set) var failures = 0

    /// - Parameter longest: after failures, unless the interval is longer.
    init(interval: Duration, longest: Duration = .seconds(3600)) {
        self.interval = interval
        self.longest = longest
    }

    mutating func succeeded() { failures = 0 }
    mutating func failed() { failures += 1 }

    /// - Parameter chance: from 0 to 1.
    func pause(_ chance: Double) -> Duration {
        // The first failure may be a restart of the server.
        let doubled = Self.shortest * (1 << min(max(failures - 1, 0), 16))
        let pause = failures == 0 ? interval : min(doubled, max(interval, longest))
        return pause * (0.8 + 0.4 * min(max(chance, 0), 1))
    }
}
