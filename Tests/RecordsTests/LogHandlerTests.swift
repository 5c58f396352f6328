import Foundation
import Logging
import Testing

@testable import PinproxyRecords

/// swift-log's events as they arrive at the other end of a pipe.
@Suite struct LogHandlerTests {
    private func logged(
        _ format: LogFormat, level: Logger.Level = .info, _ use: (inout Logger) -> Void
    ) throws -> String {
        let pipe = Pipe()
        let output = try LogOutput(descriptor: pipe.fileHandleForWriting.fileDescriptor, format: format)
        var logger = Logger(label: "test") { _ in
            EventLogHandler(output: output, level: level, clock: { 0 })
        }
        use(&logger)
        output.finish()
        try pipe.fileHandleForWriting.close()
        return String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    }

    @Test func writesFieldsInTheOrderOfTheirNames() throws {
        let text = try logged(.text) { logger in
            logger[metadataKey: "b"] = "of the logger"
            logger[metadataKey: "a"] = "hidden"
            logger.warning("pin.mismatch", metadata: ["c": .stringConvertible(7), "a": "x"])
        }
        #expect(text == "1970-01-01T00:00:00.000Z warning pin.mismatch a=x b=\"of the logger\" c=7\n")
    }

    @Test func indentsATextOfSeveralLinesSoThatItCannotForgeAnEvent() throws {
        let details: Logger.MetadataValue = "presented:\n  sha256/x\n1970-01-01T00:00:00.000Z info proxy.stop\u{1b}"
        let text = try logged(.text) { $0.warning("pin.mismatch", metadata: ["details": details, "host": "a.test"]) }
        #expect(
            text == """
                1970-01-01T00:00:00.000Z warning pin.mismatch host=a.test
                    presented:
                      sha256/x
                    1970-01-01T00:00:00.000Z info proxy.stop\\u001b

                """)
        let json = try logged(.json) { $0.warning("pin.mismatch", metadata: ["details": details]) }
        #expect(json.contains(#""details":"presented:\n  sha256/x\n1970"#))
    }

    @Test func writesStructure() throws {
        let use: (inout Logger) -> Void = { logger in
            logger.info(
                "proxy.ready",
                metadata: [
                    "listen": ["127.0.0.1:7467", "[::1]:7467"],
                    "pin": ["n": .stringConvertible(2), "ok": .stringConvertible(true)],
                ])
        }
        #expect(
            try logged(.json, use)
                == #"{"time":"1970-01-01T00:00:00.000Z","level":"info","event":"proxy.ready","#
                + #""listen":["127.0.0.1:7467","[::1]:7467"],"pin":{"n":2,"ok":true}}"# + "\n")
        #expect(
            try logged(.text, use)
                == #"1970-01-01T00:00:00.000Z info proxy.ready listen="[\"127.0.0.1:7467\",\"[::1]:7467\"]" "#
                + #"pin="{\"n\":2,\"ok\":true}""# + "\n")
    }

    @Test func keepsTheNamesOfEveryLineUnambiguous() throws {
        let text = try logged(.json) { $0.error("config.error", metadata: ["event": "x", "time": "y"]) }
        #expect(
            text
                == #"""
                {"time":"1970-01-01T00:00:00.000Z","level":"error","event":"config.error","event_":"x","time_":"y"}
                """#
                + "\n")
    }

    @Test func leavesOutWhatIsBelowItsLevel() throws {
        let text = try logged(.text, level: .warning) { logger in
            logger.info("proxy.start")
            logger.warning("config.error")
        }
        #expect(text == "1970-01-01T00:00:00.000Z warning config.error\n")
    }

    /// A datagram that is too large is dropped at once, and the next one reports that.
    @Test func countsLinesThatCannotBeWritten() throws {
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        var least: CInt = 0
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, socklen_t(MemoryLayout<CInt>.size))
        var patience = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let output = try LogOutput(descriptor: ends[0], format: .text)
        output.write(([UInt8](repeating: UInt8(ascii: "x"), count: 100_000) + Array("\n".utf8))[...], count: 1)
        func next() -> String {
            var bytes = [UInt8](repeating: 0, count: 1000)
            let count = recv(ends[1], &bytes, bytes.count, 0)
            return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        }
        let notice = next()
        #expect(notice.contains(" warning log.dropped lines=1 "), "\(notice)")
        output.write(Array("y\n".utf8)[...], count: 1)
        #expect(next() == "y\n")
        output.finish()
    }
}
