import PinproxyHTTP2
import Testing

/// The window that a path needs.
@Suite struct WindowEstimatorTests {
    private let second: UInt64 = 1_000_000_000

    @Test func aWindowThatIsFilledWithinARoundTripDoublesUpToTheBound() {
        var estimator = WindowEstimator(window: 100, most: 350)
        var now: UInt64 = 0
        for expected in [200, 350] {
            #expect(estimator.received(10, at: now) == true)
            #expect(estimator.received(estimator.window, at: now) == false)
            now += 1
            #expect(estimator.answered(at: now) == expected)
            #expect(estimator.window == expected)
        }
        // Nothing is left to measure.
        #expect(estimator.received(1000, at: now + second) == false)
        #expect(estimator.answered(at: now + second) == nil)
    }

    @Test func twoThirdsAreEnoughAndLessIsnt() {
        for (bytes, grows) in [(199, false), (200, true)] {
            var estimator = WindowEstimator(window: 300, most: 10_000)
            #expect(estimator.received(bytes, at: 0) == true)
            #expect(estimator.answered(at: 1) == (grows ? 600 : nil))
        }
    }

    @Test func aWindowThatSufficesIsMeasuredLessAndLessOften() {
        var estimator = WindowEstimator(window: 1000, most: 10_000)
        var now: UInt64 = 0
        var pauses: [UInt64] = []
        for _ in 0..<10 {
            #expect(estimator.received(1, at: now) == true)
            #expect(estimator.answered(at: now) == nil)
            var pause: UInt64 = 10_000_000
            while !isReady(estimator, now + pause) { pause *= 2 }
            pauses.append(pause / 1_000_000)
            now += pause
        }
        #expect(pauses == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 2560])
    }

    private func isReady(_ estimator: WindowEstimator, _ now: UInt64) -> Bool {
        var copy = estimator
        return copy.received(1, at: now)
    }

    @Test func anAnswerThatNobodyAskedForSaysNothing() {
        var estimator = WindowEstimator(window: 10, most: 100)
        #expect(estimator.answered(at: 1) == nil)
    }
}
