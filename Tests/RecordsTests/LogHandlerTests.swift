import Foundation
import Logging
import Testing

@testable import Records

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
                == #"{"time":"1970-01-01T00:00:00.000Z","level":"error","event":"config.error","event_":"x","time_":"y"}"#
                + "\n")
    }

    @Test func leavesOutWhatIsBelowItsLevel() throws {
        let text = try logged(.text, level: .warning) { logger in
            logger.info("proxy.start")
            logger.warning("config.error")
        }
        #expect(text == "1970-01-01T00:00:00.000Z warning config.error\n")
    }

    @Test func dropsLinesThatCannotBeWritten() throws {
        // A descriptor that was never open: nothing to write to, and nothing happens.
        let output = try LogOutput(descriptor: -1, format: .text)
        output.write(Array("x\n".utf8)[...], count: 1)
        output.finish()
    }
}
