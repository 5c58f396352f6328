import PinproxySecurity
import Testing

@testable import PinproxyConfiguration

/// The machines that a stage of a bundle or an entry applies to.
@Suite struct RolloutStageTests {
    @Test func machinesSpreadOverThePlaces() {
        var counts = [Int](repeating: 0, count: 100)
        for number in 0..<20_000 { counts[RolloutStage(machine: "machine-\(number)").place] += 1 }
        // The mean is 200 per place; the deviation is 14.
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

    /// Two machines, by their machine-id(5): one stage applies to the first only.
    @Test func anEntryIsEnforcedOnTheMachinesThatTakeTheBundle() {
        let stages = ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"].map(RolloutStage.init)
            .sorted { $0.place < $1.place }
        #expect(stages[0].place < stages[1].place)
        for percent in [1, stages[0].place, stages[0].place + 1, stages[1].place, stages[1].place + 1, 100] {
            for stage in stages {
                let rollout = PinRollout.stage(percent: percent, place: stage.place)
                #expect((rollout.enforcement(at: 0) == .enforce) == stage.isReached(by: percent))
            }
        }
    }
}
