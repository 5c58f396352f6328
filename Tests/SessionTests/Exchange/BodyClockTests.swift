import PinproxyEventLoop
import Testing

@testable import PinproxySession

struct BodyClockTests {
    private static let second: UInt64 = 1_000_000_000

    private static func at(_ tenths: Int) -> MonotonicTime {
        MonotonicTime(nanoseconds: UInt64(tenths + 10) * second / 10)
    }

    /// 100 bytes within 10 seconds; 4 seconds of silence.
    private static func clock(rate: MinimumRate? = MinimumRate(bytes: 100, within: .seconds(10))) -> BodyClock {
        BodyClock(rate: rate)
    }

    /// Plays a body: so many bytes at each instant (in tenths of a second); asks for a judgement whenever one is due.
    /// - Returns: when it ended, and how; nil: it didn't.
    private static func play(
        _ clock: BodyClock, silence: UInt64 = 4 * second, start: UInt64 = 0, until end: Int, _ bytes: (Int) -> UInt64
    ) -> (Int, BodyClock.Verdict)? {
        var clock = clock
        var moved = start
        var due = clock.keep(at: at(0), silence: silence) { moved }
        for tenth in 1...end {
            // A deadline is never early.
            if due <= at(tenth) {
                switch clock.judge(at: at(tenth), moved: moved) {
                case .onTime(let next): due = next
                case let verdict: return (tenth, verdict)
                }
            }
            let count = bytes(tenth)
            guard count > 0 else { continue }
            moved += count
            due = clock.keep(at: at(tenth), silence: silence) { moved }
        }
        return nil
    }

    @Test func aBodyThatDripsIsSlowAtTheEndOfItsWindow() throws {
        let end = try #require(Self.play(Self.clock(), until: 1000) { $0 % 10 == 0 ? 1 : 0 })
        #expect(end == (100, .slow))
    }

    /// At every pace a body is cut within two windows if it is too slow, and never if it isn't.
    @Test(arguments: 1...40) func everyPace(_ tenths: Int) {
        for count in [1, 9, 10, 40, 99, 100] as [UInt64] {
            let end = Self.play(Self.clock(), until: 3000) { $0 % tenths == 0 ? count : 0 }
            // What moves in the worst window, and in the best.
            let most = count * UInt64(100 / tenths + 1)
            let least = count * UInt64(max(100 / tenths - 1, 0))
            if tenths == 40 { continue }
            if most < 100 {
                #expect(end?.1 == .slow && (end?.0 ?? 0) <= 240, "\(count) each \(tenths): \(String(describing: end))")
            }
            if least >= 100 { #expect(end == nil, "\(count) each \(tenths): \(String(describing: end))") }
        }
    }

    /// The first window, which opens with the body, counts what follows its beginning.
    @Test func aHeadDoesNotPassForABody() throws {
        let end = try #require(Self.play(Self.clock(), start: 1_000_000, until: 1000) { $0 % 10 == 0 ? 1 : 0 })
        #expect(end == (100, .slow))
    }

    @Test func silenceIsNotADrip() throws {
        let silent = try #require(Self.play(Self.clock(), until: 1000) { _ in 0 })
        #expect(silent == (40, .silent))
        // Allowed for longer than a window.
        #expect(Self.play(Self.clock(), silence: 300 * Self.second, until: 2000) { _ in 0 } == nil)
        // A burst after each pause, longer than a window, is judged with what follows.
        #expect(Self.play(Self.clock(), silence: 300 * Self.second, until: 5000) { $0 % 250 == 0 ? 100 : 0 } == nil)
        let drops = try #require(
            Self.play(Self.clock(), silence: 300 * Self.second, until: 5000) { $0 % 250 == 0 ? 99 : 0 })
        #expect(drops == (350, .slow))
    }

    /// Silence counts from the last byte, whatever windows end meanwhile.
    @Test func aWindowDoesNotProlongTheSilence() throws {
        let end = try #require(Self.play(Self.clock(), until: 1000) { $0 <= 80 && $0 % 10 == 0 ? 50 : 0 })
        #expect(end == (120, .silent))
    }

    @Test func withoutARateOnlySilenceIsJudged() throws {
        #expect(Self.play(Self.clock(rate: nil), until: 5000) { $0 % 39 == 0 ? 1 : 0 } == nil)
        let end = try #require(Self.play(Self.clock(rate: nil), until: 5000) { _ in 0 })
        #expect(end == (40, .silent))
    }

    /// The next body has its own measurement, and so has one that is sent again.
    @Test func itBeginsAgain() {
        var clock = Self.clock()
        _ = clock.keep(at: Self.at(0), silence: Self.second) { 0 }
        #expect(clock.isRunning)
        clock.stop()
        #expect(!clock.isRunning)
        #expect(clock == Self.clock())
        _ = clock.keep(at: Self.at(50), silence: 60 * Self.second) { 5000 }
        #expect(clock.judge(at: Self.at(100), moved: 5001) == .onTime(until: Self.at(150)))
        #expect(clock.judge(at: Self.at(150), moved: 70) == .slow, "fewer than before: all are new")
        _ = clock.keep(at: Self.at(151), silence: 60 * Self.second) { 0 }
        #expect(clock.judge(at: Self.at(251), moved: 170) == .onTime(until: Self.at(751)))
    }

    @Test func theEndOfTime() {
        var clock = Self.clock(rate: MinimumRate(bytes: .max, within: .seconds(Int64(UInt32.max))))
        let late = MonotonicTime(nanoseconds: .max - 1)
        #expect(clock.keep(at: late, silence: .max) { .max } == MonotonicTime(nanoseconds: .max))
        #expect(clock.judge(at: late, moved: .max) == .onTime(until: MonotonicTime(nanoseconds: .max)))
    }
}
