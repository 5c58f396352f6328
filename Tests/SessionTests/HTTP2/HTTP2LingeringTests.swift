import PinproxyHTTP2
import Testing

@testable import PinproxyEventLoop
@testable import PinproxySession

@Suite struct HTTP2LingeringTests {
    private let bench: Workbench
    private let lingering: HTTP2Lingering

    init() throws {
        bench = try Workbench()
        lingering = HTTP2Lingering(loop: bench.loop)
    }

    private func at(_ milliseconds: UInt64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }

    @Test func eachIsDueInItsTurn() {
        for number in 0..<3 {
            #expect(lingering.add(HTTP2StreamID(Int32(number)), at: at(UInt64(number) * 100)) == nil)
        }
        #expect(lingering.takeDue(at: at(499)).isEmpty)
        #expect(lingering.takeDue(at: at(600)).map(\.rawValue) == [0, 1])
        #expect(lingering.takeDue(at: at(700)).map(\.rawValue) == [2])
        #expect(lingering.takeDue(at: at(9000)).isEmpty)
    }

    /// The number kept for one client is limited.
    @Test func theFirstMakeRoom() {
        let made = (0..<1000).compactMap { lingering.add(HTTP2StreamID(Int32($0)), at: at(0)) }.map(\.rawValue)
        #expect(made == Array(0..<744))
        #expect(lingering.takeDue(at: at(500)).map(\.rawValue) == Array(744..<1000))
    }

    @Test func nothingIsLeftAfterTheEnd() {
        _ = lingering.add(HTTP2StreamID(1), at: at(0))
        lingering.clear()
        #expect(lingering.takeDue(at: at(1000)).isEmpty && !lingering.deadline.isSet)
    }
}
