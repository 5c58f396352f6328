import PinproxyEventLoop
import Testing

@testable import PinproxyTransport

@Suite struct HappyEyeballsTests {
    private static func address(_ text: String) throws -> SocketAddress {
        SocketAddress(ip: try #require(IPAddress(text)), port: 443)
    }

    @Test(arguments: [
        (["::1", "::2", "::3", "1.1.1.1", "2.2.2.2"], ["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"]),
        (["1.1.1.1", "::1", "::2"], ["1.1.1.1", "::1", "::2"]),
        (["1.1.1.1", "2.2.2.2"], ["1.1.1.1", "2.2.2.2"]),
        (["1.1.1.1", "1.1.1.1", "::1", "1.1.1.1"], ["1.1.1.1", "::1"]),
        ([], []),
    ])
    func familiesTakeTurnsThatOfTheFirstAddressFirst(given: [String], tried: [String]) throws {
        let machine = HappyEyeballs(addresses: try given.map(Self.address))
        #expect(machine.order.map(\.ip.description) == tried)
    }

    private func machine(_ count: Int) throws -> HappyEyeballs {
        HappyEyeballs(addresses: try (1...count).map { try Self.address("192.0.2.\($0)") })
    }

    @Test func noAddressFailsAtOnce() {
        var machine = HappyEyeballs(addresses: [])
        #expect(machine.start() == .failed)
        #expect(machine.start() == .wait)
    }

    @Test func aDelayLetsTheNextOneJoinAndTheLastOneStartsNone() throws {
        var machine = try machine(3)
        #expect(machine.start() == .attempt(0, startDelay: true))
        #expect(machine.attemptDelayPassed() == .attempt(1, startDelay: true))
        #expect(machine.attemptDelayPassed() == .attempt(2, startDelay: false))
        #expect(machine.attemptDelayPassed() == .wait)
    }

    @Test func aFailureStartsTheNextOneAtOnceWithADelayOfItsOwn() throws {
        var machine = try machine(3)
        _ = machine.start()
        #expect(machine.failed(0) == .attempt(1, startDelay: true))
        #expect(machine.attemptDelayPassed() == .attempt(2, startDelay: false))
        #expect(machine.failed(1) == .wait, "the third is still at it")
        #expect(machine.failed(2) == .failed)
    }

    @Test func theFirstToConnectWinsWhicheverItIsAndTheOthersAreGivenUp() throws {
        var machine = try machine(4)
        _ = machine.start()
        _ = machine.attemptDelayPassed()
        _ = machine.attemptDelayPassed()
        #expect(machine.connected(1) == .connected(1, losers: [0, 2]))
        #expect(machine.connected(0) == .wait)
        #expect(machine.failed(2) == .wait)
        #expect(machine.attemptDelayPassed() == .wait)
    }

    @Test func oneThatFailedIsntAmongTheLosers() throws {
        var machine = try machine(3)
        _ = machine.start()
        _ = machine.failed(0)
        _ = machine.attemptDelayPassed()
        #expect(machine.connected(2) == .connected(2, losers: [1]))
    }

    @Test func whatWasNeverStartedOrIsToldTwiceChangesNothing() throws {
        var machine = try machine(3)
        #expect(machine.attemptDelayPassed() == .wait)
        #expect(machine.connected(0) == .wait)
        _ = machine.start()
        #expect(machine.connected(1) == .wait)
        #expect(machine.failed(0) == .attempt(1, startDelay: true))
        #expect(machine.failed(0) == .wait)
        #expect(machine.failed(7) == .wait)
    }

    // MARK: Late addresses

    private static func addresses(_ texts: [String]) throws -> [SocketAddress] { try texts.map(address) }

    @Test func withMoreToComeThereIsADelayAfterTheLastOneAndNoFailure() throws {
        var machine = HappyEyeballs(addresses: try Self.addresses(["::1"]), moreToCome: true)
        #expect(machine.start() == .attempt(0, startDelay: true))
        #expect(machine.failed(0) == .wait)
        #expect(
            machine.add(try Self.addresses(["::1", "1.1.1.1"]), moreToCome: false) == .attempt(1, startDelay: false))
        #expect(machine.order == (try Self.addresses(["::1", "1.1.1.1"])))
        #expect(machine.failed(1) == .failed)
    }

    @Test func whatComesWithinTheDelayWaitsForItsEnd() throws {
        var machine = HappyEyeballs(addresses: try Self.addresses(["::1"]), moreToCome: true)
        _ = machine.start()
        #expect(machine.add(try Self.addresses(["1.1.1.1"]), moreToCome: false) == .wait)
        #expect(machine.attemptDelayPassed() == .attempt(1, startDelay: false))
    }

    @Test func whatComesAfterTheDelayIsTriedAtOnce() throws {
        var machine = HappyEyeballs(addresses: try Self.addresses(["1.1.1.1"]), moreToCome: true)
        _ = machine.start()
        #expect(machine.attemptDelayPassed() == .wait)
        #expect(machine.add(try Self.addresses(["::1", "::2"]), moreToCome: false) == .attempt(1, startDelay: true))
        #expect(machine.attemptDelayPassed() == .attempt(2, startDelay: false))
    }

    @Test func theFamiliesGoOnTakingTurns() throws {
        var machine = HappyEyeballs(addresses: try Self.addresses(["::1", "::2", "::3"]), moreToCome: true)
        _ = machine.start()
        _ = machine.add(try Self.addresses(["::1", "::2", "::3", "1.1.1.1", "2.2.2.2"]), moreToCome: false)
        #expect(machine.order == (try Self.addresses(["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"])))
    }

    @Test func nothingCameAfterAll() throws {
        var machine = HappyEyeballs(addresses: [], moreToCome: true)
        #expect(machine.start() == .wait)
        #expect(machine.add([], moreToCome: false) == .failed)
        #expect(machine.add(try Self.addresses(["::1"]), moreToCome: false) == .wait)
    }

    @Test func oneThatHasConnectedNeedsNoOthers() throws {
        var machine = HappyEyeballs(addresses: try Self.addresses(["::1"]), moreToCome: true)
        _ = machine.start()
        #expect(machine.connected(0) == .connected(0, losers: []))
        #expect(machine.add(try Self.addresses(["1.1.1.1"]), moreToCome: false) == .wait)
        #expect(machine.attemptDelayPassed() == .wait)
    }

    /// In any order of events, each address is tried at most once, and it ends exactly once.
    @Test(arguments: 0..<200) func anyOrderOfEventsEndsWell(seed: UInt64) throws {
        var random = SplitMix(state: seed)
        let count = Int.random(in: 1...6, using: &random)
        var machine = try machine(count)
        var started: [Int] = []
        var pending: Set<Int> = []
        var ends = 0
        func take(_ action: HappyEyeballs.Action) {
            switch action {
            case .attempt(let index, _):
                started.append(index)
                pending.insert(index)
            case .wait:
                break
            case .connected(let winner, let losers):
                #expect(pending == [winner] || Set(losers) == pending.subtracting([winner]))
                ends += 1
            case .failed:
                #expect(pending.isEmpty && started.count == count)
                ends += 1
            }
        }
        take(machine.start())
        for _ in 0..<100 where ends == 0 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: take(machine.attemptDelayPassed())
            case 1 where !pending.isEmpty: take(machine.connected(try #require(pending.randomElement(using: &random))))
            default:
                guard let index = pending.randomElement(using: &random) else { continue }
                pending.remove(index)
                take(machine.failed(index))
            }
        }
        #expect(ends == 1)
        #expect(started == Array(0..<started.count))
    }
}

/// A generator with a fixed seed, so that failures are repeatable.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
