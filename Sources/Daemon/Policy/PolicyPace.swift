import Configuration

/// When the server of the bundle is asked next. After failures it is asked later and later; machines that were started
/// together spread out.
struct PolicyPace {
    static let shortest: Duration = .seconds(10)
    static let longest: Duration = .seconds(3600)

    private let interval: Duration
    private(set) var failures = 0

    init(interval: Duration) { self.interval = interval }

    mutating func succeeded() { failures = 0 }
    mutating func failed() { failures += 1 }

    /// - Parameter chance: from 0 to 1.
    func pause(_ chance: Double) -> Duration {
        // The first failure may be a restart of the server.
        let doubled = Self.shortest * (1 << min(max(failures - 1, 0), 16))
        let pause = failures == 0 ? interval : min(doubled, max(interval, Self.longest))
        return pause * (0.8 + 0.4 * min(max(chance, 0), 1))
    }
}
