import Foundation
import Logging
import PinproxyEventLoop
import Testing

@testable import PinproxyRecords

/// The lines that programs and users read, byte for byte.
@Suite struct LogLineTests {
    private func line(_ format: LogFormat, _ fill: (inout EventLineWriter) -> Void) -> String {
        var writer = EventLineWriter(format: format)
        writer.begin(event: "exchange", level: .info, at: 1_794_000_000_007)
        fill(&writer)
        writer.end()
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private func fill(_ writer: inout EventLineWriter) {
        writer.field("method", bytes: Array("GET".utf8).span)
        writer.field("path", "/a b\"\\=")
        writer.field("status", 200)
        writer.field("least", Int64.min)
        writer.field("most", UInt64.max)
        writer.field("reused", true)
        writer.field("empty", "")
        writer.field("duration", nanoseconds: 12_345_678)
    }

    @Test func writesText() {
        #expect(
            line(.text, fill)
                == "2026-11-06T21:20:00.007Z info exchange method=GET path=\"/a b\\\"\\\\=\" status=200 "
                + "least=-9223372036854775808 most=18446744073709551615 reused=true empty=\"\" duration=0.012345\n")
    }

    @Test func writesJSON() throws {
        let text = line(.json, fill)
        #expect(
            text
                == #"{"time":"2026-11-06T21:20:00.007Z","level":"info","event":"exchange","method":"GET","#
                + #""path":"/a b\"\\=","status":200,"least":-9223372036854775808,"most":18446744073709551615,"#
                + #""reused":true,"empty":"","duration":0.012345}"# + "\n")
        #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(text.utf8)) }
    }

    @Test func writesAddresses() throws {
        let four = SocketAddress(ip: try #require(IPAddress("192.0.2.255")), port: 65_535)
        let six = SocketAddress(ip: try #require(IPAddress("2001:db8::1")), port: 80)
        #expect(line(.json) { $0.field("a", four) }.hasSuffix(",\"a\":\"192.0.2.255:65535\"}\n"))
        #expect(line(.json) { $0.field("a", six) }.hasSuffix(",\"a\":\"[2001:db8::1]:80\"}\n"))
        #expect(line(.text) { $0.field("a", four) }.hasSuffix(" a=192.0.2.255:65535\n"))
        #expect(line(.journal) { $0.field("a", four) }.contains("PINPROXY_A=192.0.2.255:65535"))
    }

    /// Plain bytes are written eight at a time: each byte looks the same at every position as it does alone.
    @Test func whatNeedsAnEscapeIsFoundAnywhere() {
        func escaped(_ text: [UInt8]) -> [UInt8] {
            var line: [UInt8] = []
            EscapedText.append(text.span, to: &line)
            return line
        }
        for byte in UInt8.min...UInt8.max {
            let alone = escaped([byte])
            if (0x20..<0x7F).contains(byte), byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                #expect(alone == [byte])
            } else {
                #expect(alone.first == UInt8(ascii: "\\") && alone.count > 1, "\(byte)")
            }
            for place in 0..<17 {
                let before = (0..<place).map { UInt8(ascii: "a") + UInt8($0) }
                let after = (place..<17).map { UInt8(ascii: "A") + UInt8($0) }
                #expect(escaped(before + [byte] + after) == before + alone + after, "\(byte) at \(place)")
            }
        }
    }

    /// Lines longer than the buffer, and values with six bytes of output per byte of input.
    @Test func growsAsItMust() {
        var writer = EventLineWriter(format: .json, capacity: 1)
        for length in [0, 1, 100, 10_000] {
            writer.begin(event: "e", level: .info, at: 0)
            writer.field("v", String(repeating: "\u{1}", count: length))
            writer.end()
        }
        let lines = String(decoding: writer.bytes, as: UTF8.self).split(separator: "\n")
        #expect(lines.map(\.utf8.count) == [0, 1, 100, 10_000].map { lines[0].utf8.count + 6 * $0 })
        #expect(lines.last?.hasSuffix("\\u0001\\u0001\"}") == true)
    }

    /// A path from a client must not begin another line, close its quotes, or reach the terminal as a
    /// command.
    @Test(arguments: [
        ("a\nb", #"a\nb"#), ("\r\t", #"\r\t"#), ("\u{1B}[31m", #"\u001b[31m"#), ("\u{7F}", #"\u007f"#),
        ("\u{9B}31m", #"\u009b31m"#), ("\u{202E}abc", #"\u202eabc"#), ("\u{2028}", #"\u2028"#),
        ("é ü 日本 🙂", "é ü 日本 🙂"), ("\u{0}", #"\u0000"#),
    ]) func escapes(_ value: String, _ escaped: String) throws {
        let json = line(.json) { $0.field("v", value) }
        #expect(json.hasSuffix(",\"v\":\"\(escaped)\"}\n"))
        #expect(line(.text) { $0.field("v", value) }.hasSuffix(" v=\"\(escaped)\"\n"))
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        #expect(object?["v"] as? String == value)
    }

    @Test(
        arguments: [
            ([0xFF], 1), ([0xC3], 1), ([0xC3, 0x41], 1), ([0xC0, 0x80], 2), ([0xE2, 0x82], 2), ([0xED, 0xA0, 0x80], 3),
            ([0xF4, 0x90, 0x80, 0x80], 4), ([0x80], 1),
        ] as [([UInt8], Int)]) func replacesWhatIsNotUTF8(_ bytes: [UInt8], _ replaced: Int) throws
    {
        let json = line(.json) { $0.field("v", bytes: bytes.span) }
        #expect(json.components(separatedBy: #"\ufffd"#).count - 1 == replaced)
        #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(json.utf8)) }
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"), (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        ] as [(Int64, String)]) func writesTimes(_ milliseconds: Int64, _ text: String)
    {
        var writer = TimestampWriter()
        var line: [UInt8] = []
        writer.append(milliseconds, to: &line)
        #expect(String(decoding: line, as: UTF8.self) == text)
    }

    @Test func keepsSecondsApart() {
        var writer = TimestampWriter()
        var line: [UInt8] = []
        for time: Int64 in [1000, 1999, 2000, 1000] { writer.append(time, to: &line) }
        #expect(
            String(decoding: line, as: UTF8.self)
                == "1970-01-01T00:00:01.000Z1970-01-01T00:00:01.999Z1970-01-01T00:00:02.000Z1970-01-01T00:00:01.000Z")
    }
}
