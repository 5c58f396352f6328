import Foundation
import Logging
import Testing

@testable import PinproxyRecords

/// OTLP requests, byte for byte as protobuf's own Python library writes them, and the buffer of events.
@Suite struct OTLPTests {
    private static let resource = OTLPDocument.Resource(
        attributes: [OTLPAttribute("service.name", .string("pinproxy"))], version: "1.2.3")

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 0xF, radix: 16) }.joined()
    }

    private func metrics(_ write: (inout OTLPMetrics) -> Void) -> String {
        var metrics = OTLPMetrics(start: 1_544_712_660_000_000_000, time: 1_544_712_661_000_000_000)
        write(&metrics)
        return hex(metrics.finished(Self.resource))
    }

    @Test func countersAreCumulativeSums() {
        let written = metrics { metrics in
            metrics.family("pinproxy_pin_checks", .counter, "Help.")
            metrics.sample([("entry", "a\"b\u{7}é"), ("result", "missed")], UInt64.max)
            metrics.sample([("entry", "(others)")], -5, at: 1_544_712_600_000_000_000)
        }
        #expect(written == OTLPExamples.counter)
    }

    @Test func gaugesHaveUnitsAndFamiliesWithoutSamplesAreLeftOut() {
        let written = metrics { metrics in
            metrics.family("pinproxy_nothing", .gauge, "Help.")
            metrics.family("pinproxy_answer_timestamp_seconds", .gauge, "Help.", 1_544_712_661)
            metrics.family("pinproxy_part", .gauge, "Help.")
            metrics.sample([], 0.25)
        }
        #expect(written == OTLPExamples.gauges)
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity])
    func whatIsNoNumberIsLeftOut(_ value: Double) {
        let written = metrics { metrics in
            metrics.family("pinproxy_part", .gauge, "Help.")
            metrics.sample([], value)
        }
        #expect(written == OTLPExamples.empty)
        var (number, text) = (ProtobufWriter(), ProtobufWriter())
        number.put(.double(value), as: 1)
        text.put(.string("\(value)"), as: 1)
        #expect(number.bytes == text.bytes)
    }

    @Test func anEventIsALogRecord() {
        let record = OTLPLogRecord.encoded(
            "pin.mismatch", .warning, at: 1_544_712_660_300,
            [
                "host": "api.example.com", "port": .stringConvertible(443), "cause": "no pin",
                "last": .stringConvertible(true), "took": .stringConvertible(LoggedTime(nanoseconds: 1_500_000_000)),
                "many": ["a", ["k": .stringConvertible(-7)]],
            ])
        #expect(hex(OTLPLogRecord.request([record, record], of: Self.resource)) == OTLPExamples.logs)
        let long = OTLPLogRecord.encoded(
            "config.error", .error, at: .max, ["cause": "\(String(repeating: "é", count: 1 << 20))"])
        #expect(long.count < 10_000)
    }

    // MARK: Responses

    private func fields(_ bytes: [UInt8]) -> (count: Int, isBroken: Bool) {
        var reader = ProtobufReader(bytes[...])
        var count = 0
        while reader.next() != nil { count += 1 }
        return (count, reader.isBroken)
    }

    /// Every kind of field, and every prefix of them.
    @Test func aMessageIsReadToItsEndOrIsBroken() {
        var writer = ProtobufWriter()
        writer.field(1, varint: .max)
        writer.field(2, "text")
        writer.field(3, fixed64: 7)
        let whole = writer.bytes + [0x25, 1, 2, 3, 4]
        #expect(fields(whole) == (4, false))
        let ends: Set<Int> = [0, 11, 17, 26, 31]
        for count in 0...whole.count { #expect(fields(Array(whole.prefix(count))).isBroken != ends.contains(count)) }
        for broken: [UInt8] in [
            [0x00, 0x00], [0x0B], [0x0C], [0x0E], [0x0F], [0x12, 0x05, 0x00],
            [0x12, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
            [0x08] + Array(repeating: 0x80, count: 10) + [0x00],
        ] { #expect(fields(broken).isBroken, "\(broken)") }
    }

    // MARK: The buffer

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    private func filled(_ records: [[UInt8]]) -> TelemetryQueue {
        var queue = TelemetryQueue()
        for record in records { queue.add(record) }
        return queue
    }

    @Test func theOldestMakeRoomByNumberAndByBytes() {
        var queue = filled((0..<1003).map { [UInt8]("\($0)".utf8) })
        #expect(queue.dropped == 3)
        let first = queue.take()
        #expect(first.count == 256 && text(first[0]) == "3" && text(first[255]) == "258")
        queue = filled((0..<12).map { Array(repeating: UInt8($0), count: 100 << 10) })
        #expect(queue.dropped == 2)
        let big = queue.take()
        #expect(big.map { $0[0] } == [2, 3])
        // Returned entries are the oldest, and are evicted first.
        for number in 12..<15 { queue.add(Array(repeating: UInt8(number), count: 100 << 10)) }
        #expect(queue.dropped == 3)
        queue.putBack(big)
        #expect(queue.dropped == 5)
        #expect(queue.take().map { $0[0] } == [5, 6])
        queue = filled([Array(repeating: 0, count: 2 << 20)])
        #expect(queue.dropped == 1 && queue.isEmpty)
        queue = filled([Array(repeating: 0, count: 300 << 10), [1]])
        #expect(queue.take().count == 1)
        #expect(queue.take() == [[1]])
        #expect(queue.take() == [])
    }

    /// The events that a handler adds to the collector's buffer.
    private func noted(isOpen: Bool = true, _ use: (Logger) -> Void) throws -> [String] {
        let pipe = Pipe()
        let output = try LogOutput(descriptor: pipe.fileHandleForWriting.fileDescriptor, format: .json)
        output.telemetry.open(isOpen)
        use(Logger(label: "test") { _ in EventLogHandler(output: output, clock: { 0 }) })
        output.finish()
        return output.telemetry.take().map(text)
    }

    @Test func onlyEventsForAFleetAreKept() throws {
        let use: (Logger) -> Void = { logger in
            logger.warning("pin.mismatch", metadata: ["host": "a.test"])
            logger.info("exchange", metadata: ["host": "b.test"])
            logger.warning("telemetry.failed", metadata: ["cause": "of the sending"])
            logger.warning(
                "trust.failure", metadata: ["host": "wrong.pinproxy.test", "trial": .stringConvertible(true)])
            logger.error("config.error", metadata: ["cause": "c"])
        }
        let kept = try noted(use)
        #expect(kept.count == 2 && kept[0].contains("a.test") && kept[1].contains("config.error"), "\(kept)")
        #expect(try noted(isOpen: false, use) == [])
        #expect(TelemetryBuffer.events.allSatisfy { !$0.hasPrefix("telemetry.") })
    }
}
