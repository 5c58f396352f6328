import Foundation
import Logging
import PinproxyEventLoop
import PinproxyRecords
import Testing

@testable import PinproxyDaemon

/// A shortage that strikes thousands of times a second is logged twice.
@Suite(.timeLimit(.minutes(5))) struct ShortageTests {
    private final class Waiting { var isGoingOn = true }

    @Test func itIsToldOnceWhenItBeginsAndOnceWhenItIsOver() throws {
        let pipe = Pipe()
        let output = try LogOutput(descriptor: pipe.fileHandleForWriting.fileDescriptor, format: .text)
        let logger = Logger(label: "test") { _ in EventLogHandler(output: output, clock: { 0 }) }
        let loop = try EventLoop()
        let waiting = Waiting()
        let shortage = Shortage("clients.limit", loop: loop, logger: logger, quietNanoseconds: 1_000_000) {
            // The shortage still lasts at the first check.
            if !waiting.isGoingOn { loop.afterThisTurn { loop.stop() } }
            defer { waiting.isGoingOn = false }
            return waiting.isGoingOn
        }
        for _ in 1...1000 {
            shortage.strike(.warning, ["limit": "2"])
            shortage.met()
        }
        loop.run()
        withExtendedLifetime(shortage) {}
        output.finish()
        try pipe.fileHandleForWriting.close()
        let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        let lines = text.split(separator: "\n")
        #expect(lines.count == 2, "\(text)")
        #expect(lines.first == "1970-01-01T00:00:00.000Z warning clients.limit effect=\"new clients wait\" limit=2")
        #expect(lines.last?.hasSuffix("effect=over waited=1000") == true, "\(text)")
    }

    private final class Asked {
        var count = 0
        var shortage: Shortage?
    }

    /// A client that waited until now is admitted in the next turn of the loop: the shortage hasn't ended.
    @Test func itIsNotOverWhileSomebodyIsOnTheWayIn() throws {
        let loop = try EventLoop()
        let asked = Asked()
        var logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .trace
        asked.shortage = Shortage("clients.limit", loop: loop, logger: logger, quietNanoseconds: 1_000_000) {
            asked.count += 1
            if asked.count == 1 { asked.shortage?.lasted() } else { loop.afterThisTurn { loop.stop() } }
            return false
        }
        asked.shortage?.strike(.warning, [:])
        loop.run()
        #expect(asked.count == 2)
        asked.shortage = nil
    }
}
