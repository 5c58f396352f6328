/// Writes metrics in the text format of Prometheus (0.0.4) or OpenMetrics (1.0.0). Samples follow their family.
package struct MetricsText: MetricsWriter {
    package enum Format: Sendable {
        case prometheus, openMetrics

        package var type: String {
            switch self {
            case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
            case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
        }

        /// By the Accept field: OpenMetrics if it is named.
        package init(accept: String?) {
            let ranges = (accept ?? "").lowercased().split(separator: ",")
            let asked = ranges.contains { range in
                let parts = range.split(separator: ";").map { $0.filter { !$0.isWhitespace } }
                return parts.first == "application/openmetrics-text"
                    && !parts.contains { ["q=0", "q=0.0", "q=0.00", "q=0.000"].contains($0) }
            }
            self = asked ? .openMetrics : .prometheus
        }
    }

    package enum Kind: String, Sendable { case counter, gauge, histogram }

    private let format: Format
    private var text: [UInt8] = []
    private var name = ""
    private var kind = Kind.gauge

    package init(_ format: Format) { self.format = format }

    /// - Parameter name: without the `_total` of counters.
    package mutating func family(_ name: String, _ kind: Kind, _ help: String) {
        self.name = name
        self.kind = kind
        let shown = kind == .counter && format == .prometheus ? name + "_total" : name
        write("# HELP \(shown) \(Self.escaped(help, quotes: false))\n# TYPE \(shown) \(kind.rawValue)\n")
        // The name ends with the unit.
        if format == .openMetrics, let unit = ["seconds", "bytes"].first(where: { name.hasSuffix("_" + $0) }) {
            write("# UNIT \(name) \(unit)\n")
        }
    }

    package mutating func family(_ name: String, _ help: String, _ histogram: LatencyHistogram) {
        family(name, .histogram, help)
        sample([], histogram)
    }

    package mutating func sample(_ labels: [(String, String)], _ value: Double) {
        line(kind == .counter ? "_total" : "", labels, Self.number(value))
    }

    package mutating func sample(_ labels: [(String, String)], _ value: some BinaryInteger) {
        line(kind == .counter ? "_total" : "", labels, "\(value)")
    }

    package mutating func sample(_ labels: [(String, String)] = [], _ histogram: LatencyHistogram) {
        var sum: UInt64 = 0
        for (index, bound) in LatencyHistogram.bounds.enumerated() {
            sum += histogram.counts[index]
            line("_bucket", labels + [("le", "\(Double(bound) / 1e9)")], "\(sum)")
        }
        line("_bucket", labels + [("le", "+Inf")], "\(histogram.count)")
        line("_sum", labels, Self.number(Double(histogram.sum) / 1e9))
        line("_count", labels, "\(histogram.count)")
    }

    package consuming func finished() -> [UInt8] {
        if format == .openMetrics { write("# EOF\n") }
        return text
    }

    private mutating func line(_ suffix: String, _ labels: [(String, String)], _ value: String) {
        write(name)
        write(suffix)
        if !labels.isEmpty {
            write("{")
            for (index, label) in labels.enumerated() {
                write("\(index > 0 ? "," : "")\(label.0)=\"\(Self.escaped(label.1, quotes: true))\"")
            }
            write("}")
        }
        write(" \(value)\n")
    }

    private mutating func write(_ piece: String) { text += piece.utf8 }

    private static func number(_ value: Double) -> String {
        if value == .infinity { return "+Inf" }
        if value == -.infinity { return "-Inf" }
        if value.isNaN { return "NaN" }
        return value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        guard text.utf8.contains(where: { $0 == 0x5C || $0 == 0x0A || $0 == 0x22 }) else { return text }
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
