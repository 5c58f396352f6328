import PinproxyTransport
import Synchronization
import Testing

@Suite struct BodyBudgetTests {
    // MARK: Reservations

    @Test func aReservationGrowsInStepsAndGivesBackWhatItTook() {
        let budget = BodyBudget(limit: 1 << 20)
        var reservation: BodyReservation? = BodyReservation(of: budget, for: .request)
        #expect(budget.inUse == 0)
        let steps = [
            (0, 0), (1, 4096), (4096, 4096), (4097, 8192), (8193, 16384), (40_000, 65_536), (65_536, 65_536),
            (65_537, 131_072), (200_000, 262_144), (1 << 20, 1 << 20),
        ]
        for (count, bytes) in steps {
            #expect(reservation?.grow(to: count) == true, "\(count)")
            #expect(reservation?.bytes == bytes && budget.inUse == bytes, "\(count)")
        }
        // Growing to less doesn't shrink it.
        #expect(reservation?.grow(to: 1) == true && budget.inUse == 1 << 20)
        reservation = nil
        #expect(budget.inUse == 0)
    }

    @Test func whatWouldExceedTheLimitTakesNothing() {
        let budget = BodyBudget(limit: 100 << 10)
        let first = BodyReservation(of: budget, for: .request)
        #expect(first.grow(to: 60_000))
        let second = BodyReservation(of: budget, for: .response)
        #expect(second.grow(to: 30_000))
        #expect(!second.grow(to: 40_000))
        #expect(second.bytes == 32 << 10 && budget.inUse == 96 << 10)
        #expect(BodyReservation(of: budget, for: .shared, bytes: 4097) == nil)
        let last = BodyReservation(of: budget, for: .shared, bytes: 4096)
        #expect(last != nil && budget.inUse == budget.limit)
        #expect(BodyReservation(of: budget, for: .shared, bytes: 0) != nil)
        #expect(!first.grow(to: .max))
        #expect(budget.refused == [.response: 1, .shared: 1, .request: 1])
    }

    @Test func aReservationFollowsTheBodyThatTakesItsPlace() {
        let budget = BodyBudget(limit: 256 << 10)
        let reservation = BodyReservation(of: budget, for: .request)
        for (count, bytes) in [(100_000, 128 << 10), (10, 4096), (0, 0), (256 << 10, 256 << 10)] {
            #expect(reservation.resize(to: count) && budget.inUse == bytes, "\(count)")
        }
        #expect(!reservation.resize(to: 257 << 10))
        #expect(budget.inUse == 256 << 10)
    }

    @Test func oneTakesOverWhatAnotherHas() {
        let budget = BodyBudget(limit: 64 << 10)
        let all = BodyReservation(of: budget, for: .request)
        do {
            let other = BodyReservation(of: budget, for: .request)
            #expect(all.grow(to: 4096) && other.grow(to: 8192))
            all.absorb(other)
            #expect(other.bytes == 0)
        }
        #expect(all.bytes == 12 << 10 && budget.inUse == 12 << 10)
    }

    @Test func aLowerLimitLosesNoCount() {
        let budget = BodyBudget(limit: 1 << 20)
        var reservation: BodyReservation? = BodyReservation(of: budget, for: .request, bytes: 1 << 20)
        budget.limit = 64 << 10
        #expect(reservation?.bytes == 1 << 20 && budget.inUse == 1 << 20)
        #expect(BodyReservation(of: budget, for: .request, bytes: 1) == nil)
        reservation = nil
        #expect(budget.inUse == 0)
        #expect(BodyReservation(of: budget, for: .request, bytes: 64 << 10) != nil)
    }

    @Test func aShortageIsToldOnceUntilItIsTaken() {
        let budget = BodyBudget(limit: 0)
        let told = Told()
        budget.notify { told.count.add(1, ordering: .relaxed) }
        for _ in 0..<5 { _ = BodyReservation(of: budget, for: .replay, bytes: 1) }
        #expect(told.count.load(ordering: .relaxed) == 1)
        #expect(budget.takeRefusals() == 5 && budget.takeRefusals() == 0)
        _ = BodyReservation(of: budget, for: .replay, bytes: 1)
        #expect(told.count.load(ordering: .relaxed) == 2)
        #expect(budget.refused == [.replay: 6])
    }

    private final class Told: Sendable {
        let count = Atomic<Int>(0)
    }

    // MARK: Threads

    /// The limit holds with many threads, and at the end nothing is in use.
    @Test func manyThreadsKeepTheLimitAndEndAtNothing() async {
        let budget = BodyBudget(limit: 512 << 10)
        await withTaskGroup(of: Int.self) { group in
            for seed in 1...4 {
                group.addTask {
                    var random = UInt64(seed)
                    func next(_ below: Int) -> Int {
                        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                        return Int(random >> 33) % below
                    }
                    var held: [BodyReservation] = []
                    var most = 0
                    for _ in 0..<5000 {
                        switch next(5) {
                        case 0: held.append(BodyReservation(of: budget, for: .request))
                        case 1: BodyReservation(of: budget, for: .shared, bytes: next(70_000)).map { held.append($0) }
                        case 2: if let one = held.randomElement() { _ = one.grow(to: next(200_000)) }
                        case 3: if let one = held.randomElement() { _ = one.resize(to: next(200_000)) }
                        default:
                            if held.count > 1, let last = held.popLast() { held[0].absorb(last) }
                            if !held.isEmpty { held.remove(at: next(held.count)) }
                        }
                        most = max(most, budget.inUse)
                    }
                    return most
                }
            }
            for await most in group { #expect(most <= budget.limit) }
        }
        #expect(budget.inUse == 0)
        #expect(!budget.refused.isEmpty, "the limit was reached")
    }
}
