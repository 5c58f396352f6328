package import Logging

/// For swift-log: the message is the event's stable name, the metadata its fields in order of names.
package struct EventLogHandler: LogHandler {
    private var ownLevel: Logger.Level?
    /// The output's, unless it was set here.
    package var logLevel: Logger.Level {
        get { ownLevel ?? output.level }
        set { ownLevel = newValue }
    }
    package var metadata: Logger.Metadata = [:]
    package var metadataProvider: Logger.MetadataProvider?
    private let output: LogOutput
    private let clock: @Sendable () -> Int64

    /// - Parameter clock: milliseconds since 1970; called once a line, on the logging thread.
    package init(
        output: LogOutput, level: Logger.Level? = nil,
        clock: @escaping @Sendable () -> Int64 = WallClock.milliseconds
    ) {
        self.output = output
        self.clock = clock
        ownLevel = level
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var fields = metadata
        if let more = metadataProvider?.get() { fields.merge(more) { $1 } }
        if let more = event.metadata { fields.merge(more) { $1 } }
        let (name, time) = (event.message.description, clock())
        var line = output.lineWriter()
        line.begin(event: name, level: event.level, at: time)
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            line.field(Self.reserved.contains(name) ? name + "_" : Self.bare(name), value)
        }
        if let error = event.error, fields["error"] == nil { line.field("error", "\(error)") }
        line.end()
        output.write(&line)
        if output.telemetry.takes(name) { output.telemetry.add(name, event.level, at: time, fields) }
    }

    /// Names that every line has.
    private static let reserved: Set<String> = ["time", "level", "event"]

    private static func bare(_ name: String) -> String {
        if EscapedText.isBare(name.utf8.span) { return name }
        var bytes: [UInt8] = []
        EscapedText.append(name.utf8.span, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// A span of time as a value of an event: seconds, as everywhere in the log.
package struct LoggedTime: Sendable, CustomStringConvertible {
    let nanoseconds: UInt64

    package init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    package var description: String { "\(Double(nanoseconds / 1000) / 1_000_000)" }
}

extension EventLineWriter {
    fileprivate mutating func field(_ name: String, _ value: Logger.MetadataValue) {
        switch value {
        case .string(let text) where text.contains("\n"): field(name, paragraph: text)
        case .string(let text): field(name, text)
        case .stringConvertible(let value as Bool): field(name, value)
        case .stringConvertible(let value as any FixedWidthInteger): field(name, value)
        case .stringConvertible(let value as LoggedTime): field(name, nanoseconds: value.nanoseconds)
        case .stringConvertible(let value): field(name, value.description)
        case .array, .dictionary:
            var json: [UInt8] = []
            value.appendJSON(to: &json)
            field(name, json: json)
        }
    }
}

extension Logger.MetadataValue {
    fileprivate func appendJSON(to json: inout [UInt8]) {
        switch self {
        case .string(let text): Self.appendJSON(text, to: &json)
        case .stringConvertible(let value as Bool): json += Array(value.description.utf8)
        case .stringConvertible(let value as any FixedWidthInteger): json += Array(value.description.utf8)
        case .stringConvertible(let value): Self.appendJSON(value.description, to: &json)
        case .array(let values):
            json.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                value.appendJSON(to: &json)
            }
            json.append(UInt8(ascii: "]"))
        case .dictionary(let values):
            json.append(UInt8(ascii: "{"))
            for (index, (name, value)) in values.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                Self.appendJSON(name, to: &json)
                json.append(UInt8(ascii: ":"))
                value.appendJSON(to: &json)
            }
            json.append(UInt8(ascii: "}"))
        }
    }

    private static func appendJSON(_ text: String, to json: inout [UInt8]) {
        json.append(UInt8(ascii: "\""))
        EscapedText.append(text.utf8.span, to: &json)
        json.append(UInt8(ascii: "\""))
    }
}
