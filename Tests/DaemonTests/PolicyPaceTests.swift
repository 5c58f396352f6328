import Testing

@testable import PinproxyDaemon

/// When the bundle's server is asked.
@Suite struct PolicyPaceTests {
    /// Seconds: the interval, failures, and the pause without jitter.
    @Test(arguments: [
        (300, 0, 300), (300, 1, 10), (300, 2, 20), (300, 3, 40), (300, 9, 2560), (300, 10, 3600), (300, 1000, 3600),
        (10, 0, 10), (10, 1, 10), (10, 9, 2560), (86_400, 1, 10), (86_400, 14, 81_920), (86_400, 20, 86_400),
    ])
    func failuresSlowItDown(interval: Int, failures: Int, pause: Int) {
        var pace = ServicePace(interval: .seconds(interval))
        for _ in 0..<failures { pace.failed() }
        for (chance, part) in [(0, 80), (0.5, 100), (1, 120), (-1, 80), (2, 120)] {
            let expected = Duration.milliseconds(pause * part * 10)
            let difference = pace.pause(chance) - expected
            #expect(abs(difference / .milliseconds(1)) < 1, "\(chance): \(pace.pause(chance)), not \(expected)")
        }
        pace.succeeded()
        #expect(pace.pause(0.5) == .seconds(interval))
    }
}
