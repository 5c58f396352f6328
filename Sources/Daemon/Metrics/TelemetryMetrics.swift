import PinproxyRecords

/// The data that the collector has accepted. Without a collector, the families have no samples.
struct TelemetryMetrics {
    let status: TelemetryStatus?

    func write(to metrics: inout some MetricsWriter) {
        let signals = status?.signals ?? []
        metrics.family(
            "pinproxy_telemetry_sent", .counter, "Data points and log records that the collector took (telemetry).")
        for signal in signals { metrics.sample([("signal", signal.signal)], signal.sent) }
        metrics.family(
            "pinproxy_telemetry_dropped", .counter,
            "Those that were dropped: refused by the collector, or no room to queue them.")
        for signal in signals { metrics.sample([("signal", signal.signal)], signal.dropped) }
        metrics.family("pinproxy_telemetry_failures", .counter, "Tries to send that failed.")
        for signal in signals { metrics.sample([("signal", signal.signal)], signal.failures) }
        metrics.family(
            "pinproxy_telemetry_answer_timestamp_seconds", .gauge, "When the collector last took something.")
        for signal in signals {
            if let answered = signal.answered { metrics.sample([("signal", signal.signal)], answered) }
        }
    }
}
