import PinproxyHTTP2
import PinproxyHTTPWire
import Testing

/// Each limit at, under and over it (RFC 9113 section 10.5).
@Suite struct FloodGuardTests {
    /// Small enough to count here, each with a pause after which one more passes.
    static var limits: FloodLimits {
        var limits = FloodLimits()
        let rate = FloodLimits.Rate(5, perSecond: 10)
        (limits.resets, limits.faults, limits.settings, limits.pings, limits.windowUpdates) = (
            rate, rate, rate, rate, rate
        )
        (limits.emptyData, limits.priorities, limits.ignored) = (rate, rate, rate)
        limits.continuations = 5
        limits.headBlock = 1000
        return limits
    }

    static let frames: [(HTTP2Flood, FrameHeader)] = [
        (.resets, FrameHeader(.reset, length: 4, stream: 1)), (.settings, FrameHeader(.settings, length: 6, stream: 0)),
        (.settings, FrameHeader(.goAway, length: 8, stream: 0)), (.pings, FrameHeader(.ping, length: 8, stream: 0)),
        (.pings, FrameHeader(.ping, flags: 1, length: 8, stream: 0)),
        (.windowUpdates, FrameHeader(.windowUpdate, length: 4, stream: 1)),
        (.emptyData, FrameHeader(.data, length: 0, stream: 1)),
        (.priorities, FrameHeader(.priority, length: 5, stream: 1)),
        (.priorities, FrameHeader(.priorityUpdate, length: 7, stream: 0)),
        (.ignored, FrameHeader(.other, length: 7, stream: 0)),
    ]

    @Test(arguments: frames)
    func soManyPassAtOnceAndSoManyEachSecond(flood: HTTP2Flood, frame: FrameHeader) {
        var guardian = FloodGuard(Self.limits)
        let start: UInt64 = 1_000_000_000_000
        for _ in 0..<5 { #expect(guardian.received(frame, at: start) == nil) }
        #expect(guardian.received(frame, at: start) == flood)
        #expect(guardian.received(frame, at: start + 99_999_999) == flood)
        #expect(guardian.received(frame, at: start + 100_000_000) == nil)
        #expect(guardian.received(frame, at: start + 100_000_001) == flood)
        // A long pause allows no more than the burst.
        for _ in 0..<5 { #expect(guardian.received(frame, at: 10 * start) == nil) }
        #expect(guardian.received(frame, at: 10 * start) == flood)
    }

    @Test func anEmptyLastDATAFrameIsNone() {
        var guardian = FloodGuard(Self.limits)
        for _ in 0..<100 {
            #expect(guardian.received(FrameHeader(.data, flags: 1, length: 0, stream: 1), at: 1) == nil)
        }
    }

    @Test func faultsAndIgnoredHeadsAreCounted() {
        var guardian = FloodGuard(Self.limits)
        for _ in 0..<5 { #expect(guardian.faulted(at: 1) == nil) }
        #expect(guardian.faulted(at: 1) == .faults)
        let head = FrameHeader(.headers, flags: 4, length: 10, stream: 1)
        for _ in 0..<5 { #expect(guardian.ignored(head, at: 1) == nil) }
        #expect(guardian.ignored(head, at: 1) == .ignored)
        // In-flight data of reset streams is limited by windows.
        #expect(guardian.ignored(FrameHeader(.data, length: 10, stream: 1), at: 1) == nil)
    }

    @Test func aHeadHasSoManyFramesAndBytes() {
        var guardian = FloodGuard(Self.limits)
        func piece(_ kind: FrameHeader.Kind, _ length: Int) -> HTTP2Flood? {
            guardian.received(FrameHeader(kind, length: length, stream: 1), at: 1)
        }
        for _ in 0..<2 {
            #expect(piece(.headers, 10) == nil)
            for _ in 0..<5 { #expect(piece(.continuation, 10) == nil) }
        }
        #expect(piece(.continuation, 0) == .continuations)
        #expect(piece(.headers, 500) == nil)
        #expect(piece(.continuation, 500) == nil)
        #expect(piece(.continuation, 1) == .headBlock)
        #expect(piece(.headers, 1000) == nil)
        #expect(piece(.headers, 1001) == .headBlock)
    }

    @Test func workPaysForWhatComesWithIt() {
        var guardian = FloodGuard(Self.limits)
        for _ in 0..<1000 {
            #expect(guardian.received(FrameHeader(.headers, flags: 5, length: 10, stream: 1), at: 1) == nil)
            for _ in 0..<2 {
                #expect(guardian.received(FrameHeader(.windowUpdate, length: 4, stream: 0), at: 1) == nil)
                #expect(guardian.received(FrameHeader(.priority, length: 5, stream: 1), at: 1) == nil)
            }
            #expect(guardian.received(FrameHeader(.data, length: 10, stream: 1), at: 1) == nil)
            #expect(guardian.received(FrameHeader(.ping, length: 8, stream: 0), at: 1) == nil)
            guardian.sentData()
            for _ in 0..<4 {
                #expect(guardian.received(FrameHeader(.windowUpdate, length: 4, stream: 0), at: 1) == nil)
            }
            #expect(guardian.received(FrameHeader(.ping, length: 8, stream: 0), at: 1) == nil)
            guardian.streamEnded()
            #expect(guardian.received(FrameHeader(.reset, length: 4, stream: 1), at: 1) == nil)
        }
    }

    @Test func everyFloodHasWordsOfItsOwn() {
        #expect(Set(HTTP2Flood.allCases.map(\.description)).count == HTTP2Flood.allCases.count)
    }
}
