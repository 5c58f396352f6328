import Testing

@testable import PinproxyEventLoop

@Suite struct ResolverCacheTests {
    private static let second: UInt64 = 1_000_000_000
    private let start = MonotonicTime(nanoseconds: 1000 * second)

    private func after(_ seconds: UInt64) -> MonotonicTime {
        start.advanced(byNanoseconds: seconds * Self.second)
    }

    private func someAnswer() throws -> ResolverCache.Answer {
        .success(AddressAnswer([try #require(IPAddress("192.0.2.1"))], from: NameSource(.hostsFile)))
    }

    @Test(
        arguments: [
            (60, 60), (0, 1), (-1, 1), (1, 1), (3600, 3600), (3601, 3600), (Int(Int32.max), 3600), (.max, 3600),
        ] as [(Int, UInt64)])
    func anAnswerLivesAsLongAsItsRecordsFromASecondToAnHour(timeToLive: Int, lives: UInt64) throws {
        let cache = ResolverCache()
        let answer = try someAnswer()
        cache.store(answer, for: "a.test", timeToLive: timeToLive, epoch: cache.epoch, at: start)
        let end = after(lives).nanoseconds
        #expect(cache.answer(for: "a.test", at: MonotonicTime(nanoseconds: end - 1)) == answer)
        #expect(cache.answer(for: "a.test", at: MonotonicTime(nanoseconds: end)) == nil)
        #expect(cache.count == 0, "an expired answer is dropped when it is met")
    }

    @Test(arguments: [ResolutionError.notFound("a.test"), .noAddresses("a.test")])
    func thatANameHasNoAddressIsRememberedForFiveSeconds(error: ResolutionError) {
        let cache = ResolverCache()
        cache.store(.failure(error), for: "a.test", timeToLive: 3600, epoch: cache.epoch, at: start)
        #expect(cache.answer(for: "a.test", at: after(4)) == .failure(error))
        #expect(cache.answer(for: "a.test", at: after(5)) == nil)
    }

    @Test(arguments: [
        ResolutionError.timedOut("a.test"), .serverFailure(name: "a.test", reason: "refused"), .cancelled,
        .invalidName("a.test"),
    ])
    func aFailureOfTheMomentIsntRemembered(error: ResolutionError) {
        let cache = ResolverCache()
        cache.store(.failure(error), for: "a.test", timeToLive: 60, epoch: cache.epoch, at: start)
        #expect(cache.answer(for: "a.test", at: start) == nil)
    }

    @Test func itNeverHoldsMoreThanItsCapacityAndKeepsWhatIsAskedFor() throws {
        let cache = ResolverCache(capacity: 10)
        let answer = try someAnswer()
        cache.store(answer, for: "wanted.test", timeToLive: 60, epoch: cache.epoch, at: start)
        for number in 0..<1000 {
            cache.store(answer, for: "\(number).test", timeToLive: 60, epoch: cache.epoch, at: start)
            #expect(cache.count <= 10)
            #expect(cache.answer(for: "wanted.test", at: start) == answer)
            #expect(cache.answer(for: "\(number).test", at: start) == answer)
        }
        #expect(cache.answer(for: "0.test", at: start) == nil)
    }

    @Test func anAnswerThatWasAskedForBeforeEverythingWasForgottenIsntStored() throws {
        let cache = ResolverCache()
        let epoch = cache.epoch
        cache.removeAll()
        cache.store(try someAnswer(), for: "a.test", timeToLive: 60, epoch: epoch, at: start)
        #expect(cache.answer(for: "a.test", at: start) == nil)
        cache.store(try someAnswer(), for: "a.test", timeToLive: 60, epoch: cache.epoch, at: start)
        #expect(cache.answer(for: "a.test", at: start) != nil)
        cache.removeAll()
        #expect(cache.answer(for: "a.test", at: start) == nil)
    }
}
