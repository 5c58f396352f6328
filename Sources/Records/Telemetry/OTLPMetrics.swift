/// Gathers metrics for OTLP, by the names that `/metrics` has, without `_total`. Sums are cumulative.
package struct OTLPMetrics: MetricsWriter {
    private enum Number {
        case integer(Int64)
        case double(Double)
    }

    private struct Family {
        let name: String
        let kind: MetricsText.Kind
        let help: String
        var points: [[UInt8]] = []
    }

    private let start: UInt64
    private let time: UInt64
    private var families: [Family] = []

    /// - Parameters:
    ///   - start: nanoseconds since 1970: when the counts began.
    ///   - time: when they were taken.
    package init(start: UInt64, time: UInt64) {
        self.start = start
        self.time = time
    }

    /// Data points.
    package var count: Int { families.reduce(0) { $0 + $1.points.count } }

    package mutating func family(_ name: String, _ kind: MetricsText.Kind, _ help: String) {
        families.append(Family(name: name, kind: kind, help: help))
    }

    package mutating func sample(_ labels: [(String, String)], _ value: some BinaryInteger) {
        point(labels, .integer(Int64(clamping: value)), at: time)
    }

    /// A value that is no number has no point.
    package mutating func sample(_ labels: [(String, String)], _ value: Double) {
        if value.isFinite { point(labels, .double(value), at: time) }
    }

    /// Adds a point to the series at the given time.
    package mutating func sample(_ labels: [(String, String)], _ value: some BinaryInteger, at time: UInt64) {
        point(labels, .integer(Int64(clamping: value)), at: time)
    }

    private mutating func point(_ labels: [(String, String)], _ number: Number, at time: UInt64) {
        guard let family = families.indices.last else { return }
        var point = ProtobufWriter()
        if families[family].kind == .counter { point.field(2, fixed64: start) }
        point.field(3, fixed64: time)
        switch number {
        case .double(let value): point.field(4, fixed64: value.bitPattern)
        case .integer(let value): point.field(6, fixed64: UInt64(bitPattern: value))
        }
        point.put(labels.map { OTLPAttribute($0.0, .string($0.1)) }, as: 7)
        families[family].points.append(point.bytes)
    }

    private static func metric(_ family: Family) -> [UInt8] {
        var metric = ProtobufWriter()
        metric.field(1, family.name)
        metric.field(2, family.help)
        if let unit = [("_seconds", "s"), ("_bytes", "By")].first(where: { family.name.hasSuffix($0.0) })?.1 {
            metric.field(3, unit)
        }
        // A gauge or a sum.
        metric.field(family.kind == .counter ? 7 : 5) { data in
            for point in family.points { data.field(1, point) }
            guard family.kind == .counter else { return }
            // AGGREGATION_TEMPORALITY_CUMULATIVE, and monotonic
            data.field(2, varint: 2)
            data.field(3, varint: 1)
        }
        return metric.bytes
    }

    /// An `ExportMetricsServiceRequest`.
    package func finished(_ resource: OTLPDocument.Resource) -> [UInt8] {
        OTLPDocument.request(families.filter { !$0.points.isEmpty }.map(Self.metric), of: resource)
    }
}
