// Log: one line an event, the same for the log's handler and the access log.

package import Logging

/// The shapes of a line.
package enum LogFormat: Sendable, Equatable {
    /// `2026-11-21T04:12:00.123Z info proxy.ready listen=127.0.0.1:7467`, for people.
    case text
    /// `{"time":"…","level":"info","event":"proxy.ready","listen":"127.0.0.1:7467"}`, for programs.
    case json
    /// A record for the system's journal: the text without its time, and each field once more as a field of the
    /// journal. See ``JournalRecord``.
    case journal
}

/// Builds log lines in a buffer that is used again and again: once it has grown, a line with
/// literal names and values from bytes and numbers allocates nothing.
///
/// ```swift
/// writer.begin(event: "exchange", level: .info)
/// writer.field("method", bytes: method)
/// writer.field("status", 200)
/// writer.end()
/// output.write(&writer)
/// ```
package struct EventLineWriter: Sendable {
    package let format: LogFormat
    /// The lines so far, each with its line feed.
    package private(set) var bytes: [UInt8] = []
    /// How many lines these are.
    private var lines = 0
    /// What follows the line that is being written.
    private var paragraphs: [UInt8] = []
    /// Those of the journal's record that is being written.
    private var journalFields: [UInt8] = []
    private var timestamp = TimestampWriter()

    package init(format: LogFormat, capacity: Int = 1024) {
        self.format = format
        bytes.reserveCapacity(capacity)
    }

    /// How many bytes wait to be flushed.
    package var count: Int { bytes.count }

    /// Hands the lines so far over, with their number, and forgets them, but keeps the room.
    mutating func drain(to take: ([UInt8], Int) -> Void) {
        take(bytes, lines)
        lines = 0
        bytes.removeAll(keepingCapacity: true)
    }

    /// Begins a line.
    /// - Parameters:
    ///   - event: the stable name of what happened.
    ///   - time: milliseconds since 1970 in UTC.
    package mutating func begin(
        event: String, level: Logger.Level, at time: Int64 = WallClock.milliseconds()
    ) {
        switch format {
        case .json:
            append("{\"time\":\"")
            timestamp.append(time, to: &bytes)
            append("\",\"level\":\"")
            append(level.name)
            append("\",\"event\":\"")
            EscapedText.append(event.utf8.span, to: &bytes)
            append("\"")
        case .text:
            timestamp.append(time, to: &bytes)
            append(" ")
            append(level.name)
            append(" ")
            EscapedText.append(event.utf8.span, to: &bytes)
        case .journal:
            bytes.append(JournalRecord.start)
            bytes.append(UInt8(ascii: "0") + level.priority)
            EscapedText.append(event.utf8.span, to: &bytes)
            let start = bytes.count
            EscapedText.append(event.utf8.span, to: &bytes)
            addJournalField("event", from: start)
            bytes.removeSubrange(start...)
        }
    }

    /// A field whose value came from outside, in any encoding.
    package mutating func field(_ name: String, bytes value: Span<UInt8>) {
        append(name: name)
        let start = bytes.count
        text(value)
        addJournalField(name, from: start)
    }

    package mutating func field(_ name: String, _ value: String) {
        append(name: name)
        let start = bytes.count
        text(value.utf8.span)
        addJournalField(name, from: start)
    }

    package mutating func field(_ name: String, _ value: some FixedWidthInteger) {
        append(name: name)
        let start = bytes.count
        number(value)
        addJournalField(name, from: start)
    }

    package mutating func field(_ name: String, _ value: Bool) {
        append(name: name)
        let start = bytes.count
        append(value ? "true" : "false")
        addJournalField(name, from: start)
    }

    /// A span of time in milliseconds with three decimals, e.g. `12.345`.
    package mutating func field(_ name: String, nanoseconds: UInt64) {
        append(name: name)
        let start = bytes.count
        let microseconds = nanoseconds / 1000
        number(microseconds / 1000)
        append(".")
        for divisor: UInt64 in [100, 10, 1] {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: microseconds % 1000 / divisor % 10))
        }
        addJournalField(name, from: start)
    }

    /// A value with structure: JSON in all formats (quoted in a text line if it must be).
    mutating func field(_ name: String, json: [UInt8]) {
        append(name: name)
        let start = bytes.count
        switch format {
        case .json: bytes.append(contentsOf: json)
        case .text, .journal: text(json.span)
        }
        addJournalField(name, from: start)
    }

    /// A text of several lines. In the text format, and so in the journal's message, it follows the line, each of its
    /// lines indented, so that none can pass for an event; in JSON it is a value like any other.
    mutating func field(_ name: String, paragraph: String) {
        if format == .json { return field(name, paragraph) }
        let start = bytes.count
        text(paragraph.utf8.span)
        addJournalField(name, from: start)
        bytes.removeSubrange(start...)
        for line in paragraph.split(separator: "\n") {
            paragraphs.append(contentsOf: "\n    ".utf8)
            EscapedText.append(line.utf8.span, to: &paragraphs)
        }
    }

    package mutating func end() {
        if format == .json { append("}") }
        bytes.append(contentsOf: paragraphs)
        paragraphs.removeAll(keepingCapacity: true)
        if format == .journal {
            bytes.append(contentsOf: journalFields)
            journalFields.removeAll(keepingCapacity: true)
            bytes.append(JournalRecord.end)
        } else {
            append("\n")
        }
        lines += 1
    }

    /// Puts the value that begins there in the line beside it, as a field of the journal.
    private mutating func addJournalField(_ name: String, from start: Int) {
        guard format == .journal else { return }
        journalFields.append(JournalRecord.separator)
        journalFields.append(contentsOf: JournalRecord.prefix.utf8)
        for byte in name.utf8 { journalFields.append(JournalRecord.fieldNameByte(byte)) }
        journalFields.append(UInt8(ascii: "="))
        let isQuoted = bytes.count - start >= 2 && bytes[start] == UInt8(ascii: "\"")
        journalFields.append(contentsOf: bytes[(isQuoted ? start + 1 : start)..<(isQuoted ? bytes.count - 1 : bytes.count)])
    }

    private mutating func append(name: String) {
        switch format {
        case .json:
            append(",\"")
            EscapedText.append(name.utf8.span, to: &bytes)
            append("\":")
        case .text, .journal:
            append(" ")
            EscapedText.append(name.utf8.span, to: &bytes)
            append("=")
        }
    }

    private mutating func text(_ value: Span<UInt8>) {
        if format != .json, EscapedText.isBare(value) {
            for index in value.indices { bytes.append(value[index]) }
            return
        }
        append("\"")
        EscapedText.append(value, to: &bytes)
        append("\"")
    }

    private mutating func number(_ value: some FixedWidthInteger) {
        if value < 0 { append("-") }
        var rest = value.magnitude
        let start = bytes.count
        repeat {
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: remainder))
            rest = quotient
        } while rest > 0
        bytes[start...].reverse()
    }

    private mutating func append(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }
}

extension Logger.Level {
    /// `rawValue` would do, but makes a String each time.
    fileprivate var name: String {
        switch self {
        case .trace: "trace"
        case .debug: "debug"
        case .info: "info"
        case .notice: "notice"
        case .warning: "warning"
        case .error: "error"
        case .critical: "critical"
        }
    }

    /// As syslog(3) counts: what `journalctl -p err` goes by.
    fileprivate var priority: UInt8 {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}
