import Testing

@testable import PinproxyDaemon

@Suite struct PeakWatchTests {
    private func isOver(_ counts: [Int]) -> [Bool] {
        var watch = PeakWatch()
        return counts.map { watch.changed(to: $0) }
    }

    @Test func aPeakIsOverWhenHalfOfItHasGone() {
        #expect(isOver([1, 400, 1000, 900, 501, 500, 3]) == [false, false, false, false, false, true, true])
    }

    @Test func aSmallPeakIsNone() {
        #expect(isOver([PeakWatch.smallest - 1, 0]) == [false, false])
        #expect(isOver([PeakWatch.smallest, 0]) == [false, true])
    }

    @Test func whatWasGivenBackIsGivenBackOnce() {
        var watch = PeakWatch()
        for count in [1000, 300] { _ = watch.changed(to: count) }
        watch.gaveBack(at: 300)
        #expect([299, 151, 150].map { watch.changed(to: $0) } == [false, false, true])
        watch.gaveBack(at: 10)
        let last = watch.changed(to: 0)
        #expect(!last)
    }
}
