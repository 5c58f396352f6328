// Records: the log, metrics, files in the state directory, and reports. The modules above it see them as values.

package import Logging
package import PinproxyEventLoop

package enum LogFormat: Sendable, Equatable {
    /// `2026-11-21T04:12:00.123Z info proxy.ready listen=127.0.0.1:7467`, for people.
    case text
    /// `{"time":"…","level":"info","event":"proxy.ready","listen":"127.0.0.1:7467"}`, for programs.
    case json
    /// For the system's journal: the text without its time, and each field as a field (``JournalRecord``).
    case journal
}

/// Builds log lines in a reused buffer: values from bytes and numbers allocate nothing. Field names are not escaped.
package struct EventLineWriter: Sendable {
    package let format: LogFormat
    private var buffer: LineBuffer
    private var lines = 0
    /// Lines after the current one.
    private var paragraphs: [UInt8] = []
    /// The fields of the current journal record.
    private var journalFields: [UInt8] = []
    private var timestamp = TimestampWriter()
    private var time = Int64.min
    private var timeText: [UInt8] = []

    package init(format: LogFormat, capacity: Int = 1024) {
        self.format = format
        buffer = LineBuffer(capacity: capacity)
    }

    /// The lines so far, each with its line feed.
    package var bytes: [UInt8] { Array(buffer.held) }

    /// Hands over and drops the lines with their number, but keeps the room.
    mutating func drain(to take: (ArraySlice<UInt8>, Int) -> Void) {
        take(buffer.held, lines)
        lines = 0
        buffer.cut(to: 0)
    }

    /// - Parameter time: milliseconds since 1970 in UTC.
    package mutating func begin(
        event: String, level: Logger.Level, at time: Int64 = WallClock.milliseconds()
    ) {
        switch format {
        case .json:
            buffer.put("{\"time\":\"")
            put(time: time)
            buffer.put("\",\"level\":\"")
            buffer.put(level.name)
            buffer.put("\",\"event\":\"")
            buffer.put(escaping: event.utf8.span)
            buffer.put(UInt8(ascii: "\""))
        case .text:
            put(time: time)
            buffer.put(UInt8(ascii: " "))
            buffer.put(level.name)
            buffer.put(UInt8(ascii: " "))
            buffer.put(escaping: event.utf8.span)
        case .journal:
            buffer.put(JournalRecord.start)
            buffer.put(UInt8(ascii: "0") + level.priority)
            buffer.put(escaping: event.utf8.span)
            let start = buffer.count
            buffer.put(escaping: event.utf8.span)
            addJournalField("event", from: start)
            buffer.cut(to: start)
        }
    }

    /// For bytes from outside, in any encoding.
    package mutating func field(_ name: String, bytes value: Span<UInt8>) {
        append(name: name)
        let start = buffer.count
        text(value)
        addJournalField(name, from: start)
    }

    package mutating func field(_ name: String, _ value: String) { field(name, bytes: value.utf8.span) }

    package mutating func field(_ name: String, _ value: some FixedWidthInteger) {
        append(name: name)
        let start = buffer.count
        buffer.put(number: value)
        addJournalField(name, from: start)
    }

    /// `192.0.2.1:80` or `[2001:db8::1]:80`
    package mutating func field(_ name: String, _ address: SocketAddress) {
        guard let octets = address.ip.octets else { return field(name, address.description) }
        append(name: name)
        let start = buffer.count
        if format == .json { buffer.put(UInt8(ascii: "\"")) }
        buffer.put(number: octets.0)
        buffer.put(UInt8(ascii: "."))
        buffer.put(number: octets.1)
        buffer.put(UInt8(ascii: "."))
        buffer.put(number: octets.2)
        buffer.put(UInt8(ascii: "."))
        buffer.put(number: octets.3)
        buffer.put(UInt8(ascii: ":"))
        buffer.put(number: address.port)
        if format == .json { buffer.put(UInt8(ascii: "\"")) }
        addJournalField(name, from: start)
    }

    package mutating func field(_ name: String, _ value: Bool) {
        append(name: name)
        let start = buffer.count
        buffer.put(value ? "true" : "false")
        addJournalField(name, from: start)
    }

    /// A span of time in seconds with six decimals, e.g. `0.012345`.
    package mutating func field(_ name: String, nanoseconds: UInt64) {
        append(name: name)
        let start = buffer.count
        let microseconds = nanoseconds / 1000
        buffer.put(number: microseconds / 1_000_000)
        buffer.put(UInt8(ascii: "."))
        var (rest, place) = (microseconds % 1_000_000, UInt64(100_000))
        while place > 0 {
            buffer.put(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest / place))
            rest %= place
            place /= 10
        }
        addJournalField(name, from: start)
    }

    /// A value with structure: JSON in all formats (quoted in a text line if it must be).
    mutating func field(_ name: String, json: [UInt8]) {
        append(name: name)
        let start = buffer.count
        switch format {
        case .json: buffer.put(json)
        case .text, .journal: text(json.span)
        }
        addJournalField(name, from: start)
    }

    /// A text of several lines. In text and journal it follows the line, indented, so that it can't be mistaken for an
    /// event.
    mutating func field(_ name: String, paragraph: String) {
        if format == .json { return field(name, paragraph) }
        let start = buffer.count
        text(paragraph.utf8.span)
        addJournalField(name, from: start)
        buffer.cut(to: start)
        for line in paragraph.split(separator: "\n") {
            paragraphs.append(contentsOf: "\n    ".utf8)
            EscapedText.append(line.utf8.span, to: &paragraphs)
        }
    }

    package mutating func end() {
        if format == .json { buffer.put(UInt8(ascii: "}")) }
        if !paragraphs.isEmpty {
            buffer.put(paragraphs)
            paragraphs.removeAll(keepingCapacity: true)
        }
        if format == .journal {
            buffer.put(journalFields)
            journalFields.removeAll(keepingCapacity: true)
            buffer.put(JournalRecord.end)
        } else {
            buffer.put(UInt8(ascii: "\n"))
        }
        lines += 1
    }

    /// Copies the value from `start` into the journal's fields.
    private mutating func addJournalField(_ name: String, from start: Int) {
        guard format == .journal else { return }
        journalFields.append(JournalRecord.separator)
        journalFields.append(contentsOf: JournalRecord.prefix.utf8)
        for byte in name.utf8 { journalFields.append(JournalRecord.fieldNameByte(byte)) }
        journalFields.append(UInt8(ascii: "="))
        let held = buffer.held
        let isQuoted = held.count - start >= 2 && held[start] == UInt8(ascii: "\"")
        journalFields.append(
            contentsOf: held[(isQuoted ? start + 1 : start)..<(isQuoted ? held.count - 1 : held.count)])
    }

    private mutating func append(name: String) {
        switch format {
        case .json: buffer.put(name.utf8.span, before: (0x222C, 2), after: (0x3A22, 2))  // ," and ":
        case .text, .journal: buffer.put(name.utf8.span, before: (0x20, 1), after: (0x3D, 1))  // space and =
        }
    }

    private mutating func text(_ value: Span<UInt8>) {
        if format != .json, EscapedText.isBare(value) { return buffer.put(value) }
        buffer.put(escaping: value, before: (0x22, 1), after: (0x22, 1))
    }

    /// Lines often share a millisecond.
    private mutating func put(time: Int64) {
        if time != self.time {
            self.time = time
            timeText.removeAll(keepingCapacity: true)
            timestamp.append(time, to: &timeText)
        }
        buffer.put(timeText)
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

    /// The priority of syslog(3), for `journalctl -p err`.
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
