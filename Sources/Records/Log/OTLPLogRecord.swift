import Logging

/// An event of the log as a `LogRecord` of OTLP: its name, its level, and its fields as attributes.
package enum OTLPLogRecord {
    /// The most bytes of a text; longer ones are cut.
    static let textLimit = 4096

    /// - Parameter time: milliseconds since 1970.
    static func encoded(
        _ event: String, _ level: Logger.Level, at time: Int64, _ fields: Logger.Metadata
    ) -> [UInt8] {
        let nanoseconds = UInt64(min(max(time, 0), Int64.max / 1_000_000)) * 1_000_000
        var record = ProtobufWriter()
        record.field(1, fixed64: nanoseconds)
        record.field(2, varint: severity(level))
        record.field(3, level.rawValue)
        // For readers that see only the body.
        let cause = fields["cause"].map { ": \($0)" } ?? ""
        record.put(.string(cut(event + cause)), as: 5)
        record.put(fields.sorted { $0.key < $1.key }.map { OTLPAttribute($0.key, value($0.value)) }, as: 6)
        record.field(11, fixed64: nanoseconds)
        record.field(12, event)
        return record.bytes
    }

    /// An `ExportLogsServiceRequest`.
    package static func request(_ records: [[UInt8]], of resource: OTLPDocument.Resource) -> [UInt8] {
        OTLPDocument.request(records, of: resource)
    }

    /// The data model of OpenTelemetry's logs, "Mapping of SeverityNumber".
    private static func severity(_ level: Logger.Level) -> UInt64 {
        switch level {
        case .trace: 1
        case .debug: 5
        case .info: 9
        case .notice: 10
        case .warning: 13
        case .error: 17
        case .critical: 21
        }
    }

    private static func value(_ value: Logger.MetadataValue) -> OTLPValue {
        switch value {
        case .string(let text): .string(cut(text))
        case .stringConvertible(let value as Bool): .bool(value)
        case .stringConvertible(let value as any FixedWidthInteger): .integer(Int64(clamping: value))
        case .stringConvertible(let value as LoggedTime): .double(Double(value.nanoseconds) / 1e9)
        case .stringConvertible(let value): .string(cut(value.description))
        case .array(let values): .array(values.map(Self.value))
        case .dictionary(let values):
            .map(values.sorted { $0.key < $1.key }.map { OTLPAttribute($0.key, Self.value($0.value)) })
        }
    }

    private static func cut(_ text: String) -> String {
        text.utf8.count <= textLimit ? text : String(decoding: text.utf8.prefix(textLimit), as: UTF8.self)
    }
}
