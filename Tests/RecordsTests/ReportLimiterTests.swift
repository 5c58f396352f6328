import PinproxyEventLoop
import PinproxyTLS
import Testing

@testable import PinproxyRecords

@Suite struct ReportLimiterTests {
    private static let second: UInt64 = 1_000_000_000
    private func report(_ number: Int) -> SHA256Digest { SHA256Digest.of(Array("\(number)".utf8)) }
    private func time(_ seconds: UInt64) -> MonotonicTime { MonotonicTime(nanoseconds: (1000 + seconds) * Self.second) }

    /// The expectation macro can't call mutating functions.
    private func decide(_ number: Int, _ limiter: inout ReportLimiter, at seconds: UInt64) -> ReportLimiter.Ruling {
        limiter.decide(report(number), at: time(seconds))
    }

    private func taken(_ limiter: inout ReportLimiter) -> Int? { limiter.takeDropped() }

    @Test func theSameReportOnceAnHour() {
        var limiter = ReportLimiter()
        #expect(decide(1, &limiter, at: 0) == .send)
        #expect(decide(1, &limiter, at: 1) == .repeat)
        #expect(decide(2, &limiter, at: 1) == .send)
        #expect(decide(1, &limiter, at: 3599) == .repeat)
        #expect(decide(1, &limiter, at: 3600) == .send)
        #expect(decide(1, &limiter, at: 3601) == .repeat)
        #expect(taken(&limiter) == nil)
    }

    @Test func noMoreThanSoManyAMinute() {
        var limiter = ReportLimiter()
        for number in 1...ReportLimiter.perMinute { #expect(decide(number, &limiter, at: 0) == .send) }
        #expect(decide(1001, &limiter, at: 59) == .drop(isNews: true))
        #expect(decide(1002, &limiter, at: 59) == .drop(isNews: false))
        // Sent reports are repeats, not drops.
        #expect(decide(1, &limiter, at: 59) == .repeat)
        #expect(taken(&limiter) == 2)
        #expect(taken(&limiter) == nil)
        // A dropped report wasn't sent, so it is still new.
        #expect(decide(1001, &limiter, at: 60) == .send)
    }

    @Test func remembersABoundedNumber() {
        var limiter = ReportLimiter()
        for number in 0...ReportLimiter.remembered {
            #expect(decide(number, &limiter, at: UInt64(number) * 2) == .send)
        }
        // The oldest was evicted for the last one; the next one wasn't.
        #expect(decide(1, &limiter, at: 2100) == .repeat)
        #expect(decide(0, &limiter, at: 2100) == .send)
    }
}
