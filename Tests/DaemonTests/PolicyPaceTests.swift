import Testing

@testable import Daemon

/// When the server of the bundle is asked, and which machines take a stage.
@Suite struct PolicyPaceTests {
    /// Seconds: the interval, failures, and the pause without chance.
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

    @Test func machinesSpreadOverThePlaces() {
        var counts = [Int](repeating: 0, count: 100)
        for number in 0..<20_000 { counts[RolloutStage(machine: "machine-\(number)").place] += 1 }
        // Each place has 200 of them; the deviation is 14.
        #expect(counts.allSatisfy { (100...300).contains($0) }, "\(counts)")
    }

    @Test func aStageReachesThePlacesBelowIt() {
        let stage = RolloutStage(machine: "0123456789abcdef0123456789abcdef")
        #expect(stage.place == RolloutStage(machine: "0123456789abcdef0123456789abcdef").place)
        #expect(stage.isReached(by: nil))
        #expect(stage.isReached(by: 100))
        #expect(!stage.isReached(by: stage.place))
        #expect(stage.isReached(by: stage.place + 1))
    }
}
